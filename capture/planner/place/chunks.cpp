// Arenas laid end to end in one range of offsets (chunks.h): settle() finds the next offset inside one arena, place_oversized()
// makes arenas for buffers that are larger than a chunk, and split_up() turns one range of offsets into arenas.
//
//   range    | arena 0        | arena 1     | arena 2 (chunk) | ...
//   buffer      [...]  ok           [....]  crosses a joint: settle() moves it to the start of arena 2
#include <tapedeck/capture/planner/place/chunks.h>

#include <tapedeck/capture/planner/place/free_space.h>
#include <tapedeck/capture/planner/place/greedy_orders.h>

#include <tuple>
#include <utility>

namespace tapedeck {

Chunks::Chunks(const std::vector<std::int64_t>& sizes, std::int64_t chunk) : chunk_(chunk) {
  for (std::int64_t bytes : sizes) starts_.push_back(starts_.back() + bytes);
}

std::int32_t Chunks::arena_of(std::int64_t offset) const {
  if (chunk_ == 0) return 0;
  if (offset >= starts_.back())
    return static_cast<std::int32_t>(starts_.size() - 1 + static_cast<std::size_t>((offset - starts_.back()) / chunk_));
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

// The buffers larger than a chunk, largest first. Buffers of one size are sorted by birth: in this order they need the fewest
// places.
PlaceOrder larger_than(const PlaceProblem& p, std::int64_t chunk_bytes) {
  PlaceOrder order;
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].bytes > chunk_bytes) order.push_back(static_cast<std::int32_t>(i));
  std::sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
    const Tenant &a = p.buffers[x], &b = p.buffers[y];
    return std::tuple(-a.bytes, a.birth, x) < std::tuple(-b.bytes, b.birth, y);
  });
  return order;
}

}  // namespace

Oversized place_oversized(const PlaceProblem& p, std::int64_t chunk_bytes) {
  Oversized result;
  result.offsets.assign(p.buffers.size(), -1);
  const PlaceOrder order = larger_than(p, chunk_bytes);
  if (order.empty()) return result;
  Space space(p, Chunks({}, chunk_bytes));
  std::int64_t end = 0;
  for (std::int32_t i : order) {
    const Tenant& b = p.buffers[i];
    space.chunks().set_chunk(b.bytes);
    const std::int64_t offset = result.offsets[i] = space.find(i, b, Fit::first);
    space.insert(i, b, offset);
    if (offset < end) continue;
    space.chunks().add(b.bytes);
    result.sizes.push_back(b.bytes);
    end += b.bytes;
  }
  return result;
}

Oversized place_oversized(const PlaceProblem& p, std::int64_t chunk_bytes,
                          const std::function<bool(std::int32_t, std::int32_t)>& meet) {
  Oversized result;
  result.offsets.assign(p.buffers.size(), -1);
  std::vector<std::pair<std::int64_t, std::int32_t>> placed;  // sorted by offset
  std::int64_t end = 0;
  for (std::int32_t i : larger_than(p, chunk_bytes)) {
    const Tenant& b = p.buffers[i];
    const Chunks arenas(result.sizes, b.bytes);
    GapSearch search(b, Fit::first, arenas);
    for (const auto& [offset, k] : placed)
      if (meet(i, k) && !search.pass(offset, offset + p.buffers[k].bytes)) break;
    const std::int64_t offset = result.offsets[i] = search.offset();
    placed.insert(std::upper_bound(placed.begin(), placed.end(), std::pair(offset, i)), {offset, i});
    if (offset < end) continue;
    result.sizes.push_back(b.bytes);
    end += b.bytes;
  }
  return result;
}

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

}  // namespace tapedeck
