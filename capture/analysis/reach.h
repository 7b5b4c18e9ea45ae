// Which node reaches which: questions of order about the nodes of a graph. Order edges count as edges. Each question is one
// walk over nodes and operands. Authors of passes ask here before they
// move nodes or merge them. The fuse pass will ask too, and so will the viewer, when it shows the nodes that a node depends on.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Whether a path leads from node `from` to node `to`. A node reaches itself. O(nodes between them).
bool reachable(const Graph& graph, NodeId from, NodeId to);

// By node: bit k is set if a path leads from sources[k] to the node. A source reaches itself. Takes at most 64 sources and
// throws UsageError for more; callers ask for 64 sources at a time.
std::vector<std::uint64_t> predecessor_masks(const Graph& graph, std::span<const NodeId> sources);

std::vector<NodeId> source_nodes(const Graph& graph);  // nodes that wait for no node
std::vector<NodeId> sink_nodes(const Graph& graph);    // nodes that no node waits for

}  // namespace TAPEDECK_API
