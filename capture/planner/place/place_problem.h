// An instance as the searches want it: checked, buffers that have bytes, times that are dense, live bytes by step.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

// Steps that matter are those at which some buffer's bytes begin to be needed (births, and the ends of holes); every lifetime
// becomes a range of these, so times are dense and small. Holes are dense too: disjoint, apart from each other, strictly within
// the lifetime.
struct PlaceProblem {
  std::vector<Tenant> buffers;         // with bytes and alive at some step; times are indices of steps that matter
  std::vector<std::int32_t> original;  // by buffer: its number in what place() was given
  std::vector<std::pair<std::int32_t, std::int64_t>>
      left_out;  // numbers of fixed ones that are none of these, and where they are fixed
  std::int32_t steps = 0;
  std::vector<std::int64_t> load;  // by step: bytes alive
  std::int64_t bound = 0;          // the largest of these, and no less than the end of any fixed buffer

  std::size_t stretches() const;  // of all lives, between holes
};

// Throws PlaceError as place() says. O(n log n) for n lifetimes and holes.
PlaceProblem make_problem(const std::vector<Tenant>& all);

// A power of two, as nearly all are, needs no division.
inline std::int64_t align_up(std::int64_t offset, std::int64_t alignment) {
  return (alignment & (alignment - 1)) == 0 ? (offset + alignment - 1) & -alignment
                                            : (offset + alignment - 1) / alignment * alignment;
}

}  // namespace tapedeck
