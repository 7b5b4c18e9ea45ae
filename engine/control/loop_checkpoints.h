// Which carried values of a loop are kept while backward walks over its passes, and which are computed again. Carry is the
// type of the carried values before one pass. It is any handle that can be copied: tensors, or a place on a planned tape.
#pragma once

#include <tapedeck/kernels/attrs/control.h>
#include <tapedeck/kernels/export.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

// The largest number of carries that exist at once during walk_back, including the one that is being computed.
std::int64_t tape_entries(std::int64_t trips, std::int64_t checkpoint);

// The number of times that walk_back runs a pass forward, beyond the trips - 1 runs that it needs if all carries are kept. For
// kCheckpointLog with more than kMostCountedTrips passes it is an estimate.
inline constexpr std::int64_t kMostCountedTrips = 4096;
TAPEDECK_API double passes_run_again(std::int64_t trips, std::int64_t checkpoint);

namespace schedule {

std::int64_t block_length(std::int64_t trips, std::int64_t checkpoint);
std::int64_t snapshots(std::int64_t trips);  // log2(trips), rounded up
// How many passes can be walked back with s snapshots if no pass runs forward more than r times. This is the binomial
// coefficient C(s + r, s), or at_most if at_most is smaller.
std::int64_t reach(std::int64_t s, std::int64_t r, std::int64_t at_most);

// Walks back over passes hi - 1 ... lo. `first` is the carry before pass lo. All carries of the block are kept.
template <class Carry, class Advance, class Back>
void walk_block(std::int64_t lo, std::int64_t hi, Carry first, const Advance& advance, const Back& back) {
  std::vector<Carry> kept{std::move(first)};
  for (std::int64_t i = lo; i + 1 < hi; ++i) kept.push_back(advance(kept.back(), i));
  for (std::int64_t i = hi; i-- > lo;) {
    back(kept.back(), i);
    kept.pop_back();
  }
}

// Walks back block by block. Keeps the carry before each block of `length` passes. To walk back over a block, runs its passes
// again and keeps their carries.
template <class Carry, class Advance, class Back>
void walk_blocks(std::int64_t trips, std::int64_t length, Carry c, const Advance& advance, const Back& back) {
  std::vector<Carry> starts;
  for (std::int64_t lo = 0; lo < trips; lo += length) {
    starts.push_back(c);
    if (lo + length < trips)
      for (std::int64_t i = lo; i < lo + length; ++i) c = advance(c, i);
  }
  c = Carry();
  while (!starts.empty()) {
    const std::int64_t lo = static_cast<std::int64_t>(starts.size() - 1) * length;
    Carry first = std::move(starts.back());
    starts.pop_back();
    walk_block(lo, std::min(lo + length, trips), std::move(first), advance, back);
  }
}

// Walks back over passes hi - 1 ... lo with at most s kept carries. Keeps a carry in the middle, walks the right part, then
// walks the left part from `first`. The last element of `parts` is the part that is walked next.
template <class Carry, class Advance, class Back>
void walk_binomial(std::int64_t lo, std::int64_t hi, Carry first, std::int64_t s, const Advance& advance, const Back& back) {
  struct Part {
    std::int64_t lo, hi;
    Carry first;
    std::int64_t s;
  };
  std::vector<Part> parts;
  parts.push_back({lo, hi, std::move(first), s});
  while (!parts.empty()) {
    Part& part = parts.back();
    const std::int64_t trips = part.hi - part.lo;
    if (trips <= 1) {
      if (trips == 1) back(part.first, part.lo);
      parts.pop_back();
      continue;
    }
    std::int64_t r = 1;
    while (reach(part.s, r, trips) < trips) ++r;
    // The right part is as long as s - 1 snapshots and r runs allow. The left part then needs no more than r - 1 runs.
    const std::int64_t middle = part.lo + std::max<std::int64_t>(trips - reach(part.s - 1, r, trips - 1), 1);
    Carry c = part.first;
    for (std::int64_t i = part.lo; i < middle; ++i) c = advance(c, i);
    Part right{middle, part.hi, std::move(c), part.s - 1};
    part.hi = middle;
    parts.push_back(std::move(right));
  }
}

}  // namespace schedule

// Walks back over the passes trips - 1 ... 0. `advance(c, i)` runs pass i from carry c and returns the next carry. `back(c,
// i)` gets the carry before pass i. The number of carries that exist at once depends on `checkpoint`:
//   0                 all carries
//   n                 about trips / n + n
//   kCheckpointSqrt   about 2 sqrt(trips)
//   kCheckpointLog    log2(trips) + 2, by the binomial schedule "revolve" (Griewank and Walther, TOMS 2000)
template <class Carry, class Advance, class Back>
void walk_back(std::int64_t trips, std::int64_t checkpoint, Carry first, const Advance& advance, const Back& back) {
  if (trips <= 0) return;
  if (checkpoint == kCheckpointLog)
    schedule::walk_binomial(0, trips, std::move(first), std::max<std::int64_t>(schedule::snapshots(trips), 1), advance, back);
  else
    schedule::walk_blocks(trips, schedule::block_length(trips, checkpoint), std::move(first), advance, back);
}

}  // namespace tapedeck
