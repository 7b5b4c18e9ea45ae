// One graph at other sizes: its inputs get new types, and everything else follows by running inference again.
//
// Attributes that were computed from a size do not follow by themselves. Either a DimTable says how they do, or, where there is
// none, an attribute that holds a number that changed stands in the way and is an error: never a guess.
//
// Thread safe. O(nodes).
#pragma once

#include <tapedeck/capture/sizes/dim_table.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The graph at these sizes; dimensions not named keep the sample's. Throws TypeError naming op, node, place and sizes where
// inference refuses, where a rule gives no whole number, where a size is outside its range, and where state would change its
// type.
Graph retype(const Graph& graph, const DimTable& table, const Sizes& sizes);

// By inference alone, from the new types of some inputs; the others keep theirs. Throws TypeError as above, and where an
// attribute or a constant of one element holds a size, a number of elements, or one over either, that changed: the node that
// stands in the way.
Graph retype(const Graph& graph, const std::map<std::string, Type>& inputs);

// For those who change a graph themselves: `changed` is `before` with other input types or attributes, and gets the types that
// follow. `when` is added to messages. `first`, if given, may set the attributes of node n once the types of all before it are
// known.
Graph inferred_again(Graph changed, const Graph& before, const std::string& when,
                     const std::function<void(Graph& changed, NodeId n)>& first = {});

// What `after`, the same graph at other types, has not changed and perhaps should: the first attribute or constant of one
// element that holds a size, a number of elements, or one over either, that changed. Empty if there is none. `but`: nodes not
// asked.
std::string held_size(const Graph& before, const Graph& after, const std::vector<NodeId>& but = {});

// The sizes that these input types (by name; others are ignored) mean for a graph of the table. Throws TypeError if two axes
// contradict each other, an axis that is no dimension differs from the sample's, or a size is outside its range.
Sizes sizes_of(const Graph& graph, const DimTable& table, const std::map<std::string, Type>& inputs);

}  // namespace TAPEDECK_API
