// Compares the regions of two nodes. The result is the same as comparing the printed text of the regions, but nothing is
// printed. same_attributes (graph.h) compares two nodes.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// Whether an attribute of two nodes of one op is the same. REQUIRES: both nodes have attributes.
bool same_field(const Graph& a, const Node& na, const Graph& b, const Node& nb, const Field& field);

// For each value of `graph`: whether the text form prints the value's own name or number. The text form prints `_` for a
// value that no node, output or update reads and that no note `of=` names. O(nodes + values).
std::vector<bool> shown_values(const Graph& graph);

// Whether two regions print to the same text, that is, whether their names, inputs, nodes, notes and results are equal. The
// names of regions nested inside them do not count, and neither do the names of values that print as `_`. REQUIRES: both
// graphs keep the invariants of graph.h.
bool same_region(const Graph& a, const Graph& b);

// Equal for regions that same_region() calls equal. It is the same within one process only. O(size of the region).
std::uint64_t hash_region(const Graph& graph);

}  // namespace tapedeck
