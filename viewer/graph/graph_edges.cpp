#include <tapedeck/viewer/graph/graph_edges.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace tapedeck::viewer {

namespace {

struct Wire {
  BoxId from, to;
  ValueId value;
  bool operator<(const Wire& o) const { return std::tie(from, to, value) < std::tie(o.from, o.to, o.value); }
};

std::vector<Wire> all_wires(const Graph& graph, const ModuleTree& tree, const GraphLayout& layout) {
  std::vector<Wire> wires;
  std::vector<BoxId> to;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const BoxId from = layout.box_of(graph, v);
    if (from == kNone) continue;
    to.clear();
    for (const NodeId reader : tree.readers(v)) to.push_back(layout.box_of_node[at(reader)]);
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    if (to.size() > GraphLayout::kMostReaders) continue;
    // A scalar that goes to other lanes, as a learning rate, would be a line to nearly every box.
    const bool stays = graph.values[at(v)].type.shape.numel() == 1;
    const Lane lane = layout.boxes[at(from)].lane;
    for (const BoxId reader : to)
      if (reader != from && reader != kNone && !(stays && layout.boxes[at(reader)].lane != lane))
        wires.push_back({from, reader, v});
  }
  std::sort(wires.begin(), wires.end());
  return wires;
}

// The row of a frame that a box in it stands in, or the frame that holds the box.
std::int32_t row_of(const GraphLayout& layout, const GraphBox& frame, const GraphBox& box) {
  const auto begin = layout.rows.begin() + frame.first_row, end = begin + frame.rows;
  return static_cast<std::int32_t>(std::partition_point(begin, end, [&](const BoxRow& r) { return r.bottom < box.y; }) - begin);
}

// Goes up to the child of `common` that holds the box. False if another row lies behind the box on the way (`down`), or before
// it.
bool climb(const GraphLayout& layout, BoxId common, bool down, const GraphBox** box) {
  bool clear = true;
  while ((*box)->frame != common && (*box)->frame != kNone) {
    const GraphBox& frame = layout.boxes[at((*box)->frame)];
    clear = clear && row_of(layout, frame, **box) == (down ? frame.rows - 1 : 0);
    *box = &frame;
  }
  return clear;
}

void find_way(const GraphLayout& layout, GraphEdge* edge) {
  const GraphBox *a = &layout.boxes[at(edge->from)], *b = &layout.boxes[at(edge->to)];
  const BoxId common = layout.boxes_of_module[at(edge->meet)][static_cast<std::size_t>(a->lane)];
  if (a->lane != b->lane || common == kNone) return;
  const bool up = a->lane == Lane::backward;
  const bool leaves = climb(layout, common, !up, &a), enters = climb(layout, common, up, &b);
  const GraphBox& frame = layout.boxes[at(common)];
  const std::int32_t rows = row_of(layout, frame, *b) - row_of(layout, frame, *a);
  edge->rows = up ? -rows : rows;
  edge->is_clear = leaves && enters && edge->rows >= 0 && edge->rows <= 1;
}

// The item that a box shows, or a node in it.
ItemId item_of(const ModuleTree& tree, const GraphBox& box) {
  if (box.module != kNone) return tree.module(box.module).item;
  return box.input != kNone ? tree.item_of_input(box.input) : tree.item_of(box.node);
}

}  // namespace

GraphEdge edge_between(const ModuleTree& tree, const GraphLayout& layout, BoxId from, BoxId to) {
  GraphEdge edge;
  edge.from = from;
  edge.to = to;
  const GraphBox &a = layout.boxes[at(from)], &b = layout.boxes[at(to)];
  edge.meet = tree.item(tree.meet(item_of(tree, a), item_of(tree, b)).first).in;
  find_way(layout, &edge);
  edge.top = std::min(a.y, b.y);
  edge.bottom = std::max(a.bottom(), b.bottom());
  return edge;
}

void join_boxes(const Graph& graph, const ModuleTree& tree, GraphLayout* layout) {
  std::vector<GraphEdge>& edges = layout->edges;
  for (const Wire& wire : all_wires(graph, tree, *layout)) {
    if (edges.empty() || edges.back().from != wire.from || edges.back().to != wire.to)
      edges.push_back(edge_between(tree, *layout, wire.from, wire.to));
    GraphEdge& edge = edges.back();
    const std::int64_t bytes = graph.values[at(wire.value)].type.bytes();
    if (edge.value == kNone || bytes > graph.values[at(edge.value)].type.bytes()) edge.value = wire.value;
    ++edge.values;
    edge.bytes += bytes;
  }
  std::sort(edges.begin(), edges.end(), [](const GraphEdge& a, const GraphEdge& b) {
    return std::tie(a.meet, a.top, a.from, a.to) < std::tie(b.meet, b.top, b.from, b.to);
  });
  layout->first_edge.assign(tree.modules().size() + 1, 0);
  for (GraphEdge& edge : edges) ++layout->first_edge[at(edge.meet) + 1];
  for (std::size_t m = 1; m < layout->first_edge.size(); ++m) layout->first_edge[m] += layout->first_edge[m - 1];
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const bool is_first = i == 0 || edges[i - 1].meet != edges[i].meet;
    edges[i].reach = is_first ? edges[i].bottom : std::max(edges[i - 1].reach, edges[i].bottom);
  }
}

}  // namespace tapedeck::viewer
