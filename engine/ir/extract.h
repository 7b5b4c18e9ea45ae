// Takes a part out of a graph and makes it a graph of its own.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Returns a graph of the nodes that `outputs` depend on. The search back from `outputs` stops at `inputs`, which may be any
// values of the graph and become the inputs of the new graph, in the given order. A value that is given twice becomes two
// inputs; the nodes read the first one. Names and notes are kept. Order edges to nodes that are left out are dropped. Throws
// InvalidGraphError if an input or a state value is needed and is not in `inputs`; the message names it. O(nodes).
Graph extract(const Graph& graph, std::span<const ValueId> inputs, std::span<const ValueId> outputs);

// For each value of `graph`: whether `outputs` depend on it. The search back from `outputs` stops at the values in `stop`. A
// value in `stop` is marked if it is needed itself. O(nodes).
std::vector<bool> needed_values(const Graph& graph, std::span<const ValueId> stop, std::span<const ValueId> outputs);

}  // namespace TAPEDECK_API
