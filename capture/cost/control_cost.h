// Nodes with regions: their cost, which is the cost of the nodes inside times the number of passes (of a fused node less,
// because its values stay in the cache), and the number of passes.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck TAPEDECK_API {

struct Calibration;

// A loop whose number of passes is not known before the run counts as this many passes.
inline constexpr std::int64_t kAssumedTrips = 16;

// Microseconds of all passes of a loop, or of the longer branch.
double control_cost_us(const Graph& graph, const Node& node, const Calibration* calibration = nullptr);

// The number of passes of a scan or of the gradient of a loop; -1 if it is known only in the run, and for other nodes.
std::int64_t known_passes(const Graph& graph, const Node& node);

}  // namespace TAPEDECK_API
