// Where the boxes of the graph stand. Every lane is a column, and an open module is a frame in every lane in which it has
// nodes. All lanes share the rows, so the frames of one module have the same top and the same bottom, and a backward node
// stands beside the forward node that it differentiates. A closed module is a box in every lane.
//
//     forward            backward
//     +- stage1 -----+   +- stage1 -----+        one open module, in two lanes
//     | [ conv1 ]    |   | [dw] [dx]    |
//     | [ block  + ] |   | [ block  + ] |        a closed module
//     +--------------+   +--------------+
//
// The layout follows from the tree and from the modules that are open, and from nothing else. The order of the items of a
// module does not depend on the open modules, so nothing changes sides when a module opens.
#pragma once

#include <tapedeck/viewer/graph/module_tree.h>

#include <array>
#include <cstdint>
#include <vector>

namespace tapedeck::viewer {

// The lengths of a layout, in units.
struct BoxSizes {
  static constexpr double kLeafWidth = 168, kLeafHeight = 26, kCellGap = 8;
  static constexpr double kModuleWidth = 196, kModuleHeight = 48;
  static constexpr double kTitle = 26, kPad = 22, kRowGap = 24, kBesideGap = 16, kLaneGap = 64;
};

using BoxId = std::int32_t;

// A node, an input, a closed module, or the frame of an open module.
struct GraphBox {
  double x = 0, y = 0, width = 0, height = 0;  // y goes down
  BoxId frame = kNone;                         // the frame around it; kNone: the root's
  ModuleId module = kNone;                     // of a node or an input: kNone
  NodeId node = kNone;
  ValueId input = kNone;
  Lane lane = Lane::forward;
  bool open = false;
  std::int32_t first_row = 0, rows = 0;  // of a frame

  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

// Boxes of one frame beside each other. The rows of a frame stand one below the other.
struct BoxRow {
  double top = 0, bottom = 0;
  BoxId first = 0;
  std::int32_t boxes = 0;
};

// Values that go from one box to another one.
struct GraphEdge {
  BoxId from = kNone, to = kNone;
  ModuleId meet = 0;  // the module whose items they join
  // In a lane: how many rows of the lane in this module it goes on, below 0 if against the direction of the lane; and whether
  // no other row of the lane stands between its ends.
  std::int32_t rows = 0;
  bool is_clear = false;
  std::int32_t values = 0;
  std::int64_t bytes = 0;  // of these values
  ValueId value = kNone;   // the one with the most bytes
  double top = 0, bottom = 0;
  double reach = 0;  // the largest `bottom` of the edges of this module up to this one
};

struct GraphLayout {
  static constexpr int kMostReaders = 12;  // a value that more boxes read has no edges of its own

  std::vector<GraphBox> boxes;           // the first kLaneCount are the root's frames; the boxes of a row are neighbours
  std::vector<BoxRow> rows;              // the rows of a frame are neighbours
  std::vector<GraphEdge> edges;          // by module, then by top
  std::vector<std::int32_t> first_edge;  // by module, and one more
  std::vector<BoxId> box_of_node;        // the node's own box, or that of the closed module around it
  std::vector<BoxId> box_of_input;       // by input
  std::vector<std::array<BoxId, kLaneCount>> boxes_of_module;  // kNone where a module is not shown or has no nodes
  double width = 0, height = 0;

  BoxId box_of(const Graph& graph, ValueId v) const;  // kNone for state
  // The readers of a value as boxes, each once, ascending.
  std::vector<BoxId> reader_boxes(const ModuleTree& tree, ValueId v) const;
};

// `open` by module. O(modules + nodes + operands * depth), and sorting the
// edges.
GraphLayout lay_out_graph(const Graph& graph, const ModuleTree& tree, const std::vector<char>& open);

// The modules that are open at first: modules that hold more than half of the nodes, then whole levels of modules, as many as
// give kMostBoxesAtFirst boxes or fewer.
inline constexpr int kLeastBoxesAtFirst = 8, kMostBoxesAtFirst = 40;
std::vector<char> open_at_first(const ModuleTree& tree);

}  // namespace tapedeck::viewer
