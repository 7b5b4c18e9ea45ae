// How much the passes may do to a graph before it is planned. Results have the same bits at every level.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck TAPEDECK_API {

enum class OptimizationLevel : std::uint8_t {
  none = 0,      // the nodes that were recorded; only copies are added that updates and results need
  cleanups = 1,  // passes that leave nodes out: nodes that nobody needs, and copies and views that change nothing
  all = 2,       // also passes that compute other nodes in the place of some: constants, identities, common subexpressions, ...
  fused = 3,     // also one node in the place of elementwise nodes that hand values to each other
};

}  // namespace TAPEDECK_API
