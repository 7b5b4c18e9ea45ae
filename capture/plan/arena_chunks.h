// The arena of a plan in chunks: one range of offsets, and the place of each chunk in it. A plan without chunks has one chunk,
// the whole arena.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tapedeck {

class ArenaChunks {
 public:
  // REQUIRES: the chunks passed check_structure(): no size is negative, and the sizes add up to arena_bytes.
  explicit ArenaChunks(const Plan& plan) {
    if (plan.chunks.empty()) starts_.push_back(plan.arena_bytes);
    for (std::int64_t bytes : plan.chunks) starts_.push_back(starts_.back() + bytes);
  }

  std::int32_t count() const { return static_cast<std::int32_t>(starts_.size()) - 1; }
  std::int64_t start(std::int32_t chunk) const { return starts_[chunk]; }
  std::int64_t end(std::int32_t chunk) const { return starts_[static_cast<std::size_t>(chunk) + 1]; }
  std::int64_t bytes(std::int32_t chunk) const { return end(chunk) - start(chunk); }

  // The chunk that holds the byte at this offset; for an offset outside the arena, the nearest chunk. O(log count).
  std::int32_t of(std::int64_t offset) const {
    const auto after = static_cast<std::int32_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin());
    return std::clamp(after - 1, 0, count() - 1);
  }
  bool in_one(std::int64_t offset, std::int64_t bytes) const {
    const std::int32_t chunk = of(offset);
    return offset >= start(chunk) && offset <= end(chunk) && bytes <= end(chunk) - offset;
  }

 private:
  std::vector<std::int64_t> starts_{0};  // of each chunk, and the end of the last
};

}  // namespace tapedeck
