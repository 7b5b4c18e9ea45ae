// Who reaches whom: questions of order about the nodes of a graph. Order edges count as edges. All are one walk over nodes and
// operands.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Is there a way from node `from` to node `to`? A node reaches itself. O(nodes between them).
bool reachable(const Graph& graph, NodeId from, NodeId to);

// By node: bit k is set if a way leads from sources[k] to it (a source reaches itself). At most 64 sources: more are asked for
// 64 at a time, and each word costs one walk. Throws UsageError for more.
std::vector<std::uint64_t> predecessor_masks(const Graph& graph, std::span<const NodeId> sources);

std::vector<NodeId> source_nodes(const Graph& graph);  // that wait for no node
std::vector<NodeId> sink_nodes(const Graph& graph);    // for which no node waits

}  // namespace TAPEDECK_API
