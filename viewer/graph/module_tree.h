// The modules of a planned graph as a tree, for the picture of the graph. Every module has items in rows. An item is a child
// module, an input of the graph, or nodes that belong together: a forward node, the clones that repeat it, the backward nodes
// that differentiate it, and the nodes that update its parameter. So a row of a module holds a piece of forward in the lane
// forward, and all that belongs to it in the other lanes.
//
//     forward      recomputed    backward         update
//     conv1        conv1         dw, dx           w = w - lr dw        <-- an item of four nodes
//     stage1       stage1        stage1           stage1               <-- an item, a child module
//
// Forward goes down in rows: a forward node stands below the nodes of its module that it reads. Backward goes up. A module with
// more than kMostItems items is divided into groups of neighbours, which are modules of the tree too; so every module is small,
// however large the graph is.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

enum class Lane : std::uint8_t { forward, recomputed, backward, update };
inline constexpr int kLaneCount = 4;
const char* lane_name(Lane lane);  // "forward"

using ModuleId = std::int32_t;
using ItemId = std::int32_t;

// The sums over the nodes of a module in one lane.
struct LaneSums {
  std::int32_t nodes = 0;
  std::int64_t bytes = 0;
  double us = 0;
  NodeId first = kNone, last = kNone;  // in the schedule
};

struct Module {
  ModuleId parent = kNone;  // kNone: the root, which is module 0
  ItemId item = kNone;      // in the parent
  std::int32_t depth = 0;
  bool is_group = false;  // of neighbours in a large module: no path names it
  std::string name;       // "conv1": the last level of its path
  std::string label;      // for people: "conv1", "block.0"; of a group "layer0 … layer31"
  ItemId first_item = 0;  // its items in rows, from top to bottom
  std::int32_t items = 0;
  std::array<LaneSums, kLaneCount> sums;

  std::int32_t nodes() const;  // in all lanes
  double us() const;
  std::int64_t bytes() const;
};

struct ModuleItem {
  ModuleId in = kNone;
  ModuleId module = kNone;  // a child module
  ValueId input = kNone;    // an input of the graph
  std::int32_t row = 0;     // of its module, from 0
  // Of an item of nodes: the nodes of lane l are cells [first_cell[l], first_cell[l + 1]).
  std::array<std::int32_t, kLaneCount + 1> first_cell{};
};

// A node in its item: nodes in one row of a lane stand side by side.
struct NodeCell {
  NodeId node = kNone;
  std::int32_t row = 0;
};

class ModuleTree {
 public:
  static constexpr int kMostItems = 64;   // of a module; a larger one is divided
  static constexpr int kGroupItems = 32;  // of a group, at most
  static constexpr int kMostBeside = 4;   // items in a row
  static constexpr int kMostLevels = 32;  // of a path; the rest of a longer one is part of the last name

  // `bytes` and `us` by node; REQUIRES one of each for every node. O(nodes + operands * depth).
  ModuleTree(const Graph& graph, std::vector<std::int64_t> bytes, std::vector<double> us);

  // Parents come before their children.
  const std::vector<Module>& modules() const { return modules_; }
  const std::vector<ModuleItem>& items() const { return items_; }
  const std::vector<NodeCell>& cells() const { return cells_; }
  const Module& module(ModuleId m) const { return modules_[static_cast<std::size_t>(m)]; }
  const ModuleItem& item(ItemId i) const { return items_[static_cast<std::size_t>(i)]; }
  std::span<const ModuleItem> items_of(ModuleId m) const {
    return {items_.data() + module(m).first_item, static_cast<std::size_t>(module(m).items)};
  }
  ItemId item_of(NodeId n) const { return item_of_node_[static_cast<std::size_t>(n)]; }
  ItemId item_of_input(ValueId v) const { return item_of_input_[static_cast<std::size_t>(v)]; }
  Lane lane_of(NodeId n) const { return lane_of_node_[static_cast<std::size_t>(n)]; }
  ModuleId module_of(NodeId n) const { return item(item_of(n)).in; }
  // The node that a clone repeats; kNone for a node that is no clone, or whose original is not in the graph.
  NodeId original_of(NodeId n) const { return original_[static_cast<std::size_t>(n)]; }
  std::span<const NodeId> readers(ValueId v) const;  // ascending, each once
  // "stage1.0.conv1": a name for a module that stays the same from plan to plan. Groups end in "/" and their number.
  std::string path(ModuleId m) const;
  // The item of the nearest common module that holds each of two items; both are the same item if one holds the other.
  std::pair<ItemId, ItemId> meet(ItemId a, ItemId b) const;

  std::int64_t bytes_of(NodeId n) const { return bytes_[static_cast<std::size_t>(n)]; }
  double us_of(NodeId n) const { return us_[static_cast<std::size_t>(n)]; }
  double total_us() const { return modules_[0].us(); }
  NodeId nodes() const { return static_cast<NodeId>(item_of_node_.size()); }

 private:
  friend class ModuleTreeBuilder;
  std::vector<Module> modules_;
  std::vector<ModuleItem> items_;
  std::vector<NodeCell> cells_;
  std::vector<ItemId> item_of_node_, item_of_input_;
  std::vector<Lane> lane_of_node_;
  std::vector<NodeId> original_;
  std::vector<std::int64_t> bytes_;  // by node
  std::vector<double> us_;
  std::vector<std::int32_t> first_reader_;  // by value, and one more
  std::vector<NodeId> readers_;
  std::vector<std::int32_t> group_number_;  // by module: of a group in its module
};

}  // namespace tapedeck::viewer
