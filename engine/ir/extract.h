// A part of a graph as a graph of its own.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The nodes that `outputs` depend on, no further back than `inputs` (any values of the graph, in the order wanted; one given
// twice makes two inputs, of which the first is read). Names and notes come along; order edges to nodes left out go. Throws
// InvalidGraphError naming an input or state value that is needed and not given. O(nodes).
Graph extract(const Graph& graph, std::span<const ValueId> inputs, std::span<const ValueId> outputs);

// What `outputs` depend on, by value, no further back than `stop`: those of `stop` are marked if they are needed themselves.
// O(nodes).
std::vector<bool> needed_values(const Graph& graph, std::span<const ValueId> stop, std::span<const ValueId> outputs);

}  // namespace TAPEDECK_API
