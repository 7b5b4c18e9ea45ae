#include <tapedeck/capture/place/chunks.h>

#include <tapedeck/capture/place/alive.h>
#include <tapedeck/capture/place/greedy.h>

#include <limits>

namespace tapedeck {

Chunks::Chunks(const std::vector<std::int64_t>& sizes, std::int64_t chunk) : chunk_(chunk) {
  for (std::int64_t bytes : sizes) starts_.push_back(starts_.back() + bytes);
}

std::int32_t Chunks::arena_of(std::int64_t offset) const {
  if (chunk_ == 0) return 0;
  if (offset >= starts_.back()) return static_cast<std::int32_t>(starts_.size() - 1 + static_cast<std::size_t>((offset - starts_.back()) / chunk_));
  return static_cast<std::int32_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin() - 1);
}

std::int64_t Chunks::start_of(std::int32_t arena) const {
  const auto given = static_cast<std::int32_t>(starts_.size()) - 1;
  return arena <= given ? starts_[arena] : starts_.back() + chunk_ * (arena - given);
}

std::int64_t Chunks::settle_in_one(std::int64_t offset, const Tenant& b) const {
  for (std::int32_t arena = arena_of(offset);; ++arena) {
    const std::int64_t start = start_of(arena);
    const std::int64_t at = start + align_up(std::max<std::int64_t>(offset - start, 0), b.alignment);
    if (at + b.bytes <= start_of(arena + 1)) return at;
  }
}

namespace {

// Buffers larger than a chunk, largest first, each at the start of the first arena of their own that is free while it is alive.
struct Oversized {
  std::vector<std::int64_t> sizes;    // of their arenas
  std::vector<std::int64_t> offsets;  // by buffer; -1: not one of these
};

Oversized place_oversized(const PlaceProblem& p, std::int64_t chunk_bytes) {
  Oversized result;
  result.offsets.assign(p.buffers.size(), -1);
  std::vector<std::vector<std::int32_t>> arenas;
  std::vector<std::int64_t> starts;
  std::int64_t end = 0;
  for (std::int32_t i : order_by_size(p)) {
    const Tenant& b = p.buffers[i];
    if (b.bytes <= chunk_bytes) break;
    std::size_t a = 0;
    const auto is_free = [&](const std::vector<std::int32_t>& arena) {
      return std::none_of(arena.begin(), arena.end(), [&](std::int32_t k) { return alive_together(b, p.buffers[k]); });
    };
    while (a < arenas.size() && !is_free(arenas[a])) ++a;
    if (a == arenas.size()) {
      arenas.emplace_back();
      starts.push_back(end);
      result.sizes.push_back(b.bytes);
      end += b.bytes;
    }
    arenas[a].push_back(i);
    result.offsets[i] = starts[a];
  }
  return result;
}

// From one range of offsets to arenas.
Offsets split_up(const PlaceProblem& p, const Chunks& chunks, const Attempt& found, std::size_t n_buffers) {
  Offsets result = to_offsets(p, found, n_buffers);
  result.arena.assign(n_buffers, 0);
  std::vector<std::int64_t> ends;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    const std::int32_t arena = chunks.arena_of(found.offsets[i]);
    const std::int64_t offset = found.offsets[i] - chunks.start_of(arena);
    result.offsets[p.original[i]] = offset;
    result.arena[p.original[i]] = arena;
    if (ends.size() <= static_cast<std::size_t>(arena)) ends.resize(static_cast<std::size_t>(arena) + 1, 0);
    ends[arena] = std::max(ends[arena], offset + p.buffers[i].bytes);
  }
  result.end = 0;
  for (std::int64_t end : ends) result.end += end;
  result.optimal = result.end <= p.bound;
  return result;
}

}  // namespace

Offsets place_in_chunks(const PlaceProblem& p, std::int64_t chunk_bytes, std::size_t n_buffers) {
  const Oversized large = place_oversized(p, chunk_bytes);
  const Chunks chunks(large.sizes, chunk_bytes);
  Offsets best;
  best.end = std::numeric_limits<std::int64_t>::max();
  each_greedy_attempt(p, chunks, large.offsets, {}, [&](Attempt&& next) {
    Offsets split = split_up(p, chunks, next, n_buffers);
    if (split.end < best.end) best = std::move(split);
    return best.end > p.bound ? std::numeric_limits<std::int64_t>::max() : p.bound;  // an attempt that ends higher may hold less in sum
  });
  return best;
}

}  // namespace tapedeck
