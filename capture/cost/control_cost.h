// The cost of nodes with regions: the cost of the nodes inside, times the number of passes; of a fused node less, because its
// values stay in the cache.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>

namespace tapedeck {

struct Calibration;

// A loop whose number of passes is not known before the run counts as this many passes.
inline constexpr std::int64_t kAssumedTrips = 16;

// Microseconds of all passes of a loop, or of the longer branch.
double control_cost_us(const Graph& graph, const Node& node, const Calibration* calibration = nullptr);

}  // namespace tapedeck
