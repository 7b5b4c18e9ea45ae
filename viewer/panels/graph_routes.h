// The ways of edges between the boxes of the graph. In a lane an edge leaves a box in the direction of the lane and enters the
// next box from there; an edge that passes rows goes through the margin of the frame around them. Between lanes an edge goes
// from side to side.
#pragma once

#include <tapedeck/viewer/graph/graph_layout.h>
#include <tapedeck/viewer/panels/graph_view.h>

#include <vector>

namespace tapedeck::viewer {

// The points of an edge on the canvas, from its beginning to its end. The last two points give the direction of its arrow.
void route_edge(const GraphLayout& layout, const GraphEdge& edge, const GraphView& view, std::vector<ImVec2>* points);

// How far a point is from a line through points.
float distance_to(const ImVec2* points, std::size_t count, const ImVec2& from);

}  // namespace tapedeck::viewer
