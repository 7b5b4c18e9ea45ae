// Which carried values of a loop are kept while it is walked back, and what is computed again. A Carry is any copyable handle
// on the carried values before a pass: tensors, or a place on a planned tape.
#pragma once

#include <tapedeck/kernels/attrs/control.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

// The most carries that walk_back holds at once, and one that is being computed.
std::int64_t tape_entries(std::int64_t trips, std::int64_t checkpoint);

namespace schedule {

std::int64_t block_length(std::int64_t trips, std::int64_t checkpoint);
std::int64_t snapshots(std::int64_t trips);  // log2, rounded up
// How many passes can be walked back with s snapshots when none is run forward more than r times: (s + r) choose s, or at_most.
std::int64_t reach(std::int64_t s, std::int64_t r, std::int64_t at_most);

// Passes lo ... hi - 1 from their first carry, keeping all.
template <class Carry, class Advance, class Back>
void walk_block(std::int64_t lo, std::int64_t hi, Carry first, const Advance& advance, const Back& back) {
  std::vector<Carry> kept{std::move(first)};
  for (std::int64_t i = lo; i + 1 < hi; ++i) kept.push_back(advance(kept.back(), i));
  for (std::int64_t i = hi; i-- > lo;) {
    back(kept.back(), i);
    kept.pop_back();
  }
}

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

template <class Carry, class Advance, class Back>
void walk_binomial(std::int64_t lo, std::int64_t hi, const Carry& first, std::int64_t s, const Advance& advance,
                   const Back& back) {
  const std::int64_t trips = hi - lo;
  if (trips == 0) return;
  if (trips == 1) return back(first, lo);
  std::int64_t r = 1;
  while (reach(s, r, trips) < trips) ++r;
  // The right part is as long as it may be with one snapshot less; the left one then needs no more runs than r - 1.
  const std::int64_t middle = lo + std::max<std::int64_t>(trips - reach(s - 1, r, trips - 1), 1);
  {
    Carry c = first;
    for (std::int64_t i = lo; i < middle; ++i) c = advance(c, i);
    walk_binomial(middle, hi, c, s - 1, advance, back);
  }
  walk_binomial(lo, middle, first, s, advance, back);
}

}  // namespace schedule

// Walks back over passes trips - 1 ... 0. `advance(c, i)` runs pass i and returns the next carry; `back(c, i)` is given the
// carry before pass i. Alive at once: all carries for `checkpoint` 0, about trips / n + n for n, 2 sqrt(trips) for
// kCheckpointSqrt, log2(trips) + 2 for kCheckpointLog (binomial schedule: Griewank and Walther, "revolve", TOMS 2000).
template <class Carry, class Advance, class Back>
void walk_back(std::int64_t trips, std::int64_t checkpoint, Carry first, const Advance& advance, const Back& back) {
  if (trips <= 0) return;
  if (checkpoint == kCheckpointLog)
    schedule::walk_binomial(0, trips, first, std::max<std::int64_t>(schedule::snapshots(trips), 1), advance, back);
  else
    schedule::walk_blocks(trips, schedule::block_length(trips, checkpoint), std::move(first), advance, back);
}

}  // namespace tapedeck
