// The curves of tradeoff() as a picture: the budget to the right, the cost upwards as a multiple of keeping everything. Each
// strategy has a curve through the points at which its plan fits, and the lower bound of cost is dashed. Every point tells its
// numbers under the pointer.
#pragma once

#include <tapedeck/capture/planner/tradeoff.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// An SVG document. `title`: a name for the graph. Deterministic. Thread safe.
std::string tradeoff_svg(const Tradeoff& tradeoff, const std::string& title);

}  // namespace TAPEDECK_API
