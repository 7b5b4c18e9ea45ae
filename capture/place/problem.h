// An instance as the searches want it: buffers that have bytes, times that are dense, live bytes by step.
#pragma once

#include <tapedeck/capture/place/place.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// Steps that matter are births; every lifetime becomes a range of births, so times are dense and small.
struct PlaceProblem {
  std::vector<Tenant> buffers;         // with bytes; times are indices of births
  std::vector<std::int32_t> original;  // by buffer: its number in what place() was given
  std::int32_t steps = 0;
  std::vector<std::int64_t> load;      // by step: bytes alive
  std::int64_t bound = 0;              // the largest of these
};

PlaceProblem make_problem(const std::vector<Tenant>& all);

inline std::int64_t align_up(std::int64_t offset, std::int64_t alignment) { return (offset + alignment - 1) / alignment * alignment; }

}  // namespace tapedeck
