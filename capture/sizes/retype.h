// One graph at other sizes: its inputs get new types, and everything else follows by running inference again.
//
// Attributes that were computed from a size do not follow by inference. A DimTable says how they follow. Without a table, an
// attribute that holds a changed number is an error; nothing is guessed.
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

// The graph at these sizes; dimensions without a size here keep the size of the sample. Throws TypeError that names op, node,
// place and sizes: if inference refuses, if a rule gives no whole number, if a size is outside its range, or if state would
// change its type.
Graph retype(const Graph& graph, const DimTable& table, const Sizes& sizes);

// The graph by inference alone, from new types of some inputs; the other inputs keep their types. Throws TypeError as above,
// and if an attribute or a constant of one element holds a changed size, a changed number of elements, or one over either; the
// message names the node.
Graph retype(const Graph& graph, const std::map<std::string, Type>& inputs);

// For code that changes a graph itself: `changed` is `before` with other input types or attributes, and gets the types that
// follow. `when` is added to messages. `first`, if given, may set the attributes of node n once the types of all nodes before
// it are known.
Graph inferred_again(Graph changed, const Graph& before, const std::string& when,
                     const std::function<void(Graph& changed, NodeId n)>& first = {});

// The first attribute or constant of one element in `after`, the same graph at other types, that holds a changed size, a
// changed number of elements, or one over either, and so may have to change too. Empty if there is none. `but`: nodes that are
// left out.
std::string held_size(const Graph& before, const Graph& after, const std::vector<NodeId>& but = {});

// The sizes that these input types give the dimensions of the table; types of other names are ignored. Throws TypeError if two
// axes contradict each other, if an axis that is no dimension differs from the sample, or if a size is outside its range.
Sizes sizes_of(const Graph& graph, const DimTable& table, const std::map<std::string, Type>& inputs);

}  // namespace TAPEDECK_API
