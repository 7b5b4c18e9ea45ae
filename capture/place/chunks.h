// Several arenas instead of one, none larger than a cap: all are laid end to end in one range of offsets, and no buffer may lie across a
// joint. What places buffers in one arena places them in several, if it asks settle() where it would have aligned.
#pragma once

#include <tapedeck/capture/place/problem.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

class Chunks {
 public:
  Chunks() = default;   // one arena, of any size
  // Arenas of these sizes, then as many of `chunk` bytes as it takes.
  Chunks(const std::vector<std::int64_t>& sizes, std::int64_t chunk);

  bool is_one() const { return chunk_ == 0; }
  // The lowest offset from `offset` on where the buffer is aligned, in its arena, and lies in one.
  std::int64_t settle(std::int64_t offset, const Tenant& b) const {
    return chunk_ == 0 ? align_up(offset, b.alignment) : settle_in_one(offset, b);
  }
  std::int32_t arena_of(std::int64_t offset) const;
  std::int64_t start_of(std::int32_t arena) const;

 private:
  std::int64_t settle_in_one(std::int64_t offset, const Tenant& b) const;

  std::vector<std::int64_t> starts_{0};   // of the arenas of given sizes, and of the first that follows
  std::int64_t chunk_ = 0;                // 0: there is one arena
};

// Greedy placement into arenas of at most `chunk_bytes`. Buffers larger than that share arenas of their own size, which others may use as
// well. `end` is the sum of what each arena holds.
Offsets place_in_chunks(const PlaceProblem& p, std::int64_t chunk_bytes, std::size_t n_buffers);

}  // namespace tapedeck
