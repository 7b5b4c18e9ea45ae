// Groups of values, by the module or by the op of the node that makes them, and a colour for each group. The groups follow from
// the captured graph alone, so a group has the same colour in every plan of this graph, whatever its budget.
//
// Modules: the first levels of the module paths, as many as give six groups or more, of which none has more than half of the
// bytes. If these are more than twelve, numbered neighbours are joined ("block.0-1", "block.2-3"); if they are still more, the
// largest keep their colours. Ops: those whose results take the most bytes. All that has no group of its own is "others".
//
//     paths     stem, stage1.0.conv1, stage1.0.conv2, stage1.1.conv1, stage2.0.conv1, ...
//     groups    stem, stage1, stage2, stage3, stage4, head                                      the first level is enough
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tapedeck::viewer {

// The rule for the colour of a value.
enum class ColourBy : std::uint8_t { role, module, op };
inline constexpr int kColourByCount = 3;

const char* colour_by_name(ColourBy by);                   // "role", "module", "op"
bool find_colour_by(std::string_view name, ColourBy* by);  // false if none has this name

// The groups of one graph, or of several together. Looking up a group keeps what it found, so only one thread may use the
// object.
class ValueGroups {
 public:
  static constexpr int kLeast = 6, kMost = 12;  // groups with a colour of their own, as far as the graph has so many

  // REQUIRES by != ColourBy::role. O(values + nodes), and sorting the distinct paths.
  ValueGroups(const Graph& captured, ColourBy by) : ValueGroups(std::vector<const Graph*>{&captured}, by) {}
  // The groups of several graphs, made together, so that a group has the same colour in the plans of all of these graphs.
  ValueGroups(const std::vector<const Graph*>& captured, ColourBy by);

  ColourBy by() const { return by_; }
  // The groups: those with a colour of their own, then "others", then those values that have no module, or no op.
  int count() const { return static_cast<int>(names_.size()); }
  int others() const { return count() - 2; }
  int outside() const { return count() - 1; }
  const std::string& name(int group) const { return names_[static_cast<std::size_t>(group)]; }
  // The group of a node or a value of any plan of the graph. A value that no node makes belongs to the module that its name
  // begins with.
  int of_node(const Graph& graph, NodeId n) const;
  int of_value(const Graph& graph, ValueId v) const;

 private:
  void group_modules(const std::vector<const Graph*>& captured);
  void group_ops(const std::vector<const Graph*>& captured);
  int of_path(std::string_view path) const;
  std::string_view module_of(const Name& path) const;

  ColourBy by_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> group_of_;       // by the first levels of a path, or by the name of an op
  std::unordered_set<const void*> outside_names_;       // of inputs and state, interned
  int depth_ = 1;                                       // how many levels
  mutable std::unordered_map<const void*, int> known_;  // by interned path, or by op
};

}  // namespace tapedeck::viewer
