// Joins the boxes of a layout: one edge for all values that go from one box to another one.
#pragma once

#include <tapedeck/viewer/graph/graph_layout.h>

namespace tapedeck::viewer {

// The edge from one box to another one, without values.
GraphEdge edge_between(const ModuleTree& tree, const GraphLayout& layout, BoxId from, BoxId to);
// Fills the edges of the layout. REQUIRES that its boxes are placed.
void join_boxes(const Graph& graph, const ModuleTree& tree, GraphLayout* layout);

}  // namespace tapedeck::viewer
