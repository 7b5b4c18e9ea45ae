// The walk behind same_program.h. Each question compares one property of sides[0] with the same property of every other side:
//
//     graphs     node count, updates, number of inputs and of state, outputs, names of outputs
//     node n     op, number of operands and results, types of operands, operands, constant or attributes, types of results,
//                regions
//
// The first side with another answer becomes the `other` of a ProgramDifference. The caller sees all sides in it, so a caller
// that compares recordings at many sizes reads the attribute of all of them there.
#include <tapedeck/capture/analysis/same_program.h>

#include <tapedeck/engine/ir/compare_nodes.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tapedeck {

namespace {

using Kind = ProgramDifference::Kind;

// Constants are the same if their bytes are; a constant without bytes is known by its name.
bool same_literal(const Literal& a, const Literal& b) {
  if (a.type != b.type || !a.data != !b.data) return false;
  if (!a.data) return a.tensor == b.tensor;
  return a.data == b.data || std::memcmp(a.data.get(), b.data.get(), static_cast<std::size_t>(a.type.bytes())) == 0;
}

class SideBySide {
 public:
  SideBySide(std::span<const ProgramSide> sides, const AllowDifference& allow) : sides_(sides), allow_(allow) {}

  // `differs` says whether a side differs from the first in this; true if none does or the caller allows the difference.
  template <class Differs>
  bool agree(Kind kind, Differs differs, std::int32_t index = kNone, const Field* field = nullptr) const {
    for (std::size_t i = 1; i < sides_.size(); ++i)
      if (differs(sides_[0], sides_[i])) return allow_({kind, index, field, sides_, i});
    return true;
  }

 private:
  std::span<const ProgramSide> sides_;
  const AllowDifference& allow_;
};

class NodeComparison {
 public:
  NodeComparison(std::span<const ProgramSide> sides, const AllowDifference& allow)
      : sides_(sides), node_(sides[0].node()), side_by_side_(sides, allow) {}

  bool same() const {
    using Side = ProgramSide;
    const auto differs_by = [](auto property) {
      return [property](const Side& a, const Side& b) { return property(a.node()) != property(b.node()); };
    };
    if (!side_by_side_.agree(Kind::op, differs_by([](const Node& n) { return n.op; }))) return false;
    if (!side_by_side_.agree(Kind::operand_count, differs_by([](const Node& n) { return n.n_inputs; }))) return false;
    if (!side_by_side_.agree(Kind::result_count, differs_by([](const Node& n) { return n.n_outputs; }))) return false;
    const bool comparable = std::all_of(sides_.begin(), sides_.end(), [&](const Side& side) {
      const Node& n = side.node();
      return n.op == node_.op && n.n_inputs == node_.n_inputs && n.n_outputs == node_.n_outputs;
    });
    return !comparable || (same_operands() && same_attributes() && same_result_types() && same_regions());
  }

 private:
  bool same_operands() const {
    const auto operand = [](const ProgramSide& side, std::int32_t i) { return side.graph->inputs(side.node())[i]; };
    for (std::int32_t i = 0; i < node_.n_inputs; ++i) {
      const auto other_type = [&](const ProgramSide& a, const ProgramSide& b) {
        return a.graph->values[operand(a, i)].type != b.graph->values[operand(b, i)].type;
      };
      if (!side_by_side_.agree(Kind::operand_type, other_type, i)) return false;
    }
    const auto operand_class = [&](const ProgramSide& side, std::int32_t i) {
      const ValueId v = operand(side, i);
      return side.value_classes.empty() ? v : side.value_classes[v];
    };
    for (std::int32_t i = 0; i < node_.n_inputs; ++i) {
      const auto other_value = [&](const ProgramSide& a, const ProgramSide& b) {
        return operand_class(a, i) != operand_class(b, i);
      };
      if (!side_by_side_.agree(Kind::operand, other_value, i)) return false;
    }
    return true;
  }

  bool same_attributes() const {
    const auto literal = [](const ProgramSide& side) { return side.graph->literal(side.node()); };
    if (std::all_of(sides_.begin(), sides_.end(), [&](const ProgramSide& side) { return literal(side) != nullptr; }))
      return side_by_side_.agree(
          Kind::literal, [&](const ProgramSide& a, const ProgramSide& b) { return !same_literal(*literal(a), *literal(b)); });
    const auto has_none = [](const ProgramSide& side) { return side.node().attrs == kNone; };
    if (std::all_of(sides_.begin(), sides_.end(), has_none)) return true;
    if (std::any_of(sides_.begin(), sides_.end(), has_none))
      return side_by_side_.agree(Kind::field,
                                 [&](const ProgramSide& a, const ProgramSide& b) { return has_none(a) != has_none(b); });
    for (const Field& field : fields_of(*node_.op)) {
      const auto other_field = [&](const ProgramSide& a, const ProgramSide& b) {
        return !same_field(*a.graph, a.node(), *b.graph, b.node(), field);
      };
      if (!side_by_side_.agree(Kind::field, other_field, kNone, &field)) return false;
    }
    return true;
  }

  bool same_regions() const {
    for (std::int32_t r = 0; r < node_.n_regions; ++r) {
      const auto other_region = [&](const ProgramSide& a, const ProgramSide& b) {
        const Region &x = a.graph->regions_of(a.node())[r], &y = b.graph->regions_of(b.node())[r];
        return x != y && !same_region(*x, *y);
      };
      if (!side_by_side_.agree(Kind::region, other_region, r)) return false;
    }
    return true;
  }

  bool same_result_types() const {
    for (std::int32_t i = 0; i < node_.n_outputs; ++i) {
      const auto other_type = [&](const ProgramSide& a, const ProgramSide& b) {
        return a.graph->output_values(a.node())[i].type != b.graph->output_values(b.node())[i].type;
      };
      if (!side_by_side_.agree(Kind::result_type, other_type, i)) return false;
    }
    return true;
  }

  std::span<const ProgramSide> sides_;
  const Node& node_;  // of sides[0]
  SideBySide side_by_side_;
};

bool same_whole(std::span<const ProgramSide> sides, const AllowDifference& allow) {
  const SideBySide side_by_side(sides, allow);
  const auto differs_by = [](auto property) {
    return [property](const ProgramSide& a, const ProgramSide& b) { return property(*a.graph) != property(*b.graph); };
  };
  const auto other_updates = [](const ProgramSide& a, const ProgramSide& b) {
    const auto& x = a.graph->updates;
    const auto& y = b.graph->updates;
    return !std::equal(x.begin(), x.end(), y.begin(), y.end(),
                       [](const Update& u, const Update& v) { return u.state == v.state && u.value == v.value; });
  };
  return side_by_side.agree(Kind::node_count, differs_by([](const Graph& g) { return g.node_count(); })) &&
         side_by_side.agree(Kind::updates, other_updates) &&
         side_by_side.agree(Kind::inputs, differs_by([](const Graph& g) { return g.n_inputs; })) &&
         side_by_side.agree(Kind::state, differs_by([](const Graph& g) { return g.n_state; })) &&
         side_by_side.agree(Kind::outputs, differs_by([](const Graph& g) -> const auto& { return g.outputs; })) &&
         side_by_side.agree(Kind::output_names, differs_by([](const Graph& g) -> const auto& { return g.output_names; }));
}

}  // namespace

bool same_node(std::span<const ProgramSide> sides, const AllowDifference& allow) { return NodeComparison(sides, allow).same(); }

bool same_program(std::span<const Graph* const> graphs, const AllowDifference& allow) {
  std::vector<ProgramSide> sides;
  for (const Graph* g : graphs) sides.push_back({g, kNone});
  if (!same_whole(sides, allow)) return false;
  NodeId n_nodes = graphs[0]->node_count();
  for (const Graph* g : graphs) n_nodes = std::min(n_nodes, g->node_count());
  for (NodeId n = 0; n < n_nodes; ++n) {
    for (ProgramSide& side : sides) side.id = n;
    if (!same_node(sides, allow)) return false;
  }
  return true;
}

}  // namespace tapedeck
