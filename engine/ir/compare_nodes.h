// Compares the regions of two nodes. The result is the same as comparing the printed text of the regions, but nothing is
// printed. same_attributes (graph.h) compares two nodes.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {

// Whether an attribute is the same in two attribute structs. Bits are compared: -0.0 and 0.0 differ, and a NaN equals itself.
bool same_field(const void* a, const void* b, const Field& field);

// Whether an attribute of two nodes of one op is the same. REQUIRES: both nodes have attributes.
bool same_field(const Graph& a, const Node& na, const Graph& b, const Node& nb, const Field& field);

// The words in the text attributes of a node that may be names of values in its regions: `follows` of a dynamic region has
// "y.shape.0=x@1", in which %y and %x are names.
using MentionedNames = std::set<std::string, std::less<>>;
MentionedNames mentioned_names(const Graph& graph, const Node& node);

// For each value of `graph`: whether the text form prints the value's own name or number. The text form prints `_` for a
// value that no node, output or update reads, that no note `of=` names, and that is not among `mentioned`: the names that the
// node mentions whose region `graph` is. O((nodes + values) log of the mentioned names).
std::vector<bool> shown_values(const Graph& graph, const MentionedNames& mentioned = {});

// Whether two regions print to the same text, that is, whether their names, inputs, nodes, notes and results are equal. The
// names of regions nested inside them do not count, and neither do the names of values that print as `_`. REQUIRES: both
// graphs keep the invariants of graph.h. `mentioned`: as for shown_values().
bool same_region(const Graph& a, const Graph& b, const MentionedNames& mentioned = {});

// Equal for regions that same_region() calls equal. It is the same within one process only. O(size of the region).
std::uint64_t hash_region(const Graph& graph);

}  // namespace tapedeck
