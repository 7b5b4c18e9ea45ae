// The traits of a node together with the traits of its nested graphs.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>

namespace tapedeck {

// The traits of the node's op and of all ops inside its regions, at any depth: a loop whose body prints has an effect. O(nodes
// inside).
std::uint32_t traits_within(const Graph& graph, const Node& node);

}  // namespace tapedeck
