// Comparing the regions of nodes, as their text form would compare but without printing them. Nodes compare by same_attributes
// (graph.h).
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <vector>

namespace tapedeck {

// By value, whether the text form shows its name or number. It shows `_` for a value that no one reads and no note `of=` names.
std::vector<bool> shown_values(const Graph& graph);

// Whether two regions print to the same text: they have the same name, inputs, nodes, notes and results. The name of a nested
// region and the names that the text does not show do not count. REQUIRES: both keep the invariants of graph.h.
bool same_region(const Graph& a, const Graph& b);

}  // namespace tapedeck
