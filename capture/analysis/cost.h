// What nodes cost: microseconds of the model and bytes of workspace. Functions of op, types and attributes only.
#pragma once

#include <tapedeck/engine/graph.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// Model cost of every node, finite and >= 0.
std::vector<double> node_costs(const Graph& graph);

// Scratch bytes of every node while it runs.
std::int64_t node_workspace(const Graph& graph, const Node& node);
std::vector<std::int64_t> node_workspaces(const Graph& graph);

}  // namespace tapedeck
