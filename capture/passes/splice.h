// Copies nodes from one graph into another that is being built. Rewriter cannot do this, because it makes its graph of one
// whole graph. For passes that add inputs, take pieces out, inline a region or move nodes out of one.
//
//     Splice s(from, to);  s.bind(v, w);  s.copy(n);      // the operands of n are the values that its old operands are bound
//     to
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <span>
#include <unordered_set>
#include <vector>

namespace tapedeck {

// The names that the values of a graph have, so that no name is given out twice.
class TakenNames {
 public:
  TakenNames() = default;
  explicit TakenNames(const Graph& graph);
  bool take(Name name);                 // false for an empty name or a name that is taken
  Name fresh(const std::string& stem);  // `stem`, or stem_2, stem_3 ...; taken from now on

 private:
  std::unordered_set<const void*> taken_;
};

class Splice {
 public:
  // REQUIRES: both outlive the splice; `names` holds the names of `to`.
  Splice(const Graph& from, Graph& to, TakenNames& names)
      : Splice(from, to, names, std::vector<ValueId>(from.values.size(), kNone)) {}
  // With a map that exists already. If many small pieces are taken from one graph, a map for each would be quadratic.
  Splice(const Graph& from, Graph& to, TakenNames& names, std::vector<ValueId> map)
      : from_(from), to_(to), names_(names), map_(std::move(map)) {}
  std::vector<ValueId> take_map() && { return std::move(map_); }

  void bind(ValueId old_value, ValueId new_value) { map_[old_value] = new_value; }
  ValueId at(ValueId old_value) const { return map_[old_value]; }

  // Appends node n. Results keep their names if these are free. Order edges to values that are not bound are left out. Throws
  // InvalidGraphError if an operand is not bound.
  NodeId copy(NodeId n);
  // Appends node n with other attributes (null: its own), result types and regions, and with more operands (values of the new
  // graph).
  NodeId copy_as(NodeId n, const void* attrs, std::span<const Type> types, std::span<const Region> regions,
                 std::span<const ValueId> further = {});

 private:
  Name moved_note(const Node& node, Name note) const;

  const Graph& from_;
  Graph& to_;
  TakenNames& names_;
  std::vector<ValueId> map_;
};

// A graph built anew from another graph, in this order: inputs, state, nodes (all by `splice`), finish().
struct Rebuild {
  const Graph& from;
  Graph to;
  TakenNames names;
  Splice splice;

  explicit Rebuild(const Graph& g) : from(g), splice(from, to, names) { to.name = g.name; }
  Rebuild(const Rebuild&) = delete;

  void input(ValueId v);  // an input or a state value of `from` as an input
  void state(ValueId v);
  void all_inputs();
  void all_state();
  Graph finish();  // outputs and updates as in `from`; REQUIRES: the values that they name are bound
};

}  // namespace tapedeck
