// On which device each value is, read from the graph: inputs and state where the map puts them, results of to_device where its
// attribute says, other results where their operands are. A program with several devices asks this after place_devices(); a
// plan with an arena for each device will ask it too.
#pragma once

#include <tapedeck/capture/passes/pass_options.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

// By value; empty for a value without operands, which can be made anywhere. Throws InvalidGraphError that names the node if its
// operands are on different devices, or if a to_device names another device than its operand is on. O(nodes and operands).
std::vector<Name> devices_of_values(const Graph& graph, const DeviceMap& map);

}  // namespace TAPEDECK_API
