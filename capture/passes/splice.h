// Copies nodes from one graph into another that is being built: what Rewriter cannot do, for it makes its graph from one graph
// whole. For passes that add inputs, take pieces out, inline a region or move nodes out of one.
//
//     Splice s(from, to);  s.bind(v, w);  s.copy(n);      // n's operands are those that its old operands are bound to
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <span>
#include <unordered_set>
#include <vector>

namespace tapedeck {

// The names that a graph's values have, so that no second one is given out.
class TakenNames {
 public:
  TakenNames() = default;
  explicit TakenNames(const Graph& graph);
  bool take(Name name);                 // false for a name that is taken, or none
  Name fresh(const std::string& stem);  // `stem`, or stem_2, stem_3 ...; taken from now on

 private:
  std::unordered_set<const void*> taken_;
};

class Splice {
 public:
  // REQUIRES: both outlive the splice; `names` holds the names of `to`.
  Splice(const Graph& from, Graph& to, TakenNames& names)
      : Splice(from, to, names, std::vector<ValueId>(from.values.size(), kNone)) {}
  // With a map that is there already: where many small pieces are taken from one graph, making one for each would be quadratic.
  Splice(const Graph& from, Graph& to, TakenNames& names, std::vector<ValueId> map)
      : from_(from), to_(to), names_(names), map_(std::move(map)) {}
  std::vector<ValueId> take_map() && { return std::move(map_); }

  void bind(ValueId old_value, ValueId new_value) { map_[old_value] = new_value; }
  ValueId at(ValueId old_value) const { return map_[old_value]; }

  // Appends node n. Results keep their names where these are free. Order edges to values that are not bound go.
  // Throws InvalidGraphError if an operand is not bound.
  NodeId copy(NodeId n);
  // The same with other attributes (null: the node's own), result types and regions, and with further operands (values of the
  // new graph).
  NodeId copy_as(NodeId n, const void* attrs, std::span<const Type> types, std::span<const Region> regions,
                 std::span<const ValueId> further = {});

 private:
  Name moved_note(const Node& node, Name note) const;

  const Graph& from_;
  Graph& to_;
  TakenNames& names_;
  std::vector<ValueId> map_;
};

// A graph built anew from another one, in this order: inputs, state, nodes (all by `splice`), finish().
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
  Graph finish();  // outputs and updates as in `from`; REQUIRES: what they name is bound
};

}  // namespace tapedeck
