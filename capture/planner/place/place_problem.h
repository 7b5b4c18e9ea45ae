// An instance in the form that the searches need: checked, without buffers that need no bytes, with dense times, and with the
// bytes alive at every step.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

// Only the steps at which some buffer's bytes begin to be needed matter: births, and ends of holes. All times are renumbered to
// these steps, so times are dense and small. Holes are renumbered too: they are disjoint, do not touch each other, and lie
// strictly inside the lifetime.
struct PlaceProblem {
  std::vector<Tenant>
      buffers;  // the buffers that have bytes and are alive at some step; times are numbers of the steps that matter
  std::vector<std::int32_t> original;  // by buffer: its index in the list given to place()
  // The fixed buffers that are not among `buffers`: the index given to place(), and the offset.
  std::vector<std::pair<std::int32_t, std::int64_t>> left_out;
  std::int32_t steps = 0;
  std::vector<std::int64_t> load;  // by step: the bytes alive
  std::int64_t bound = 0;          // the largest load, or the end of a fixed buffer if that is higher

  std::size_t stretches() const;  // the number of intervals between holes, over all buffers
};

// Makes an instance from the buffers given to place(), and throws PlaceError as place() does. O(n log n) for n lifetimes and
// holes.
PlaceProblem make_problem(const std::vector<Tenant>& all);

// The smallest multiple of `alignment` that is at least `offset`. A power of two needs no division, and nearly all alignments
// are powers of two.
inline std::int64_t align_up(std::int64_t offset, std::int64_t alignment) {
  return (alignment & (alignment - 1)) == 0 ? (offset + alignment - 1) & -alignment
                                            : (offset + alignment - 1) / alignment * alignment;
}

// The largest multiple of `alignment` that is at most `offset`, which is not negative.
inline std::int64_t align_down(std::int64_t offset, std::int64_t alignment) {
  return (alignment & (alignment - 1)) == 0 ? offset & -alignment : offset / alignment * alignment;
}

}  // namespace tapedeck
