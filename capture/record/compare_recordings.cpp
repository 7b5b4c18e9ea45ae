// Two recordings of a step are one program if same_program() finds no difference and both use the same tensors.
//
//     first call                       second call
//     %h = add(%x, constant 2)         %h = add(%x, constant 3)      error: the constant differs; pass it as an input
//     %h = exp(%x)                     %h = tanh(%x)                 error: the step did something else
//     state: tensor 'w'                state: another tensor 'w'     error: make the tensor once, outside
#include <tapedeck/capture/record/compare_recordings.h>

#include <tapedeck/capture/record/node_mismatch.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tapedeck {

namespace {

OperandName operand_name(const ProgramSide& side, ValueId v) {
  const Graph& g = *side.graph;
  const NodeId maker = g.values[v].node;
  const MismatchKind kind = g.is_input(v)               ? MismatchKind::input
                            : g.is_state(v)             ? MismatchKind::external_tensor
                            : g.literal(g.nodes[maker]) ? MismatchKind::constant
                                                        : MismatchKind::internal_value;
  return {kind, "%" + g.value_name(v)};
}

// The first two recordings must be the same program with the same constants; the first node that differs is an error that says
// what to do.
[[noreturn]] void refuse_node(const ProgramDifference& d) {
  const ProgramSide &first = d.first(), &second = d.second();
  const Origin &then = first.node().origin, &now = second.node().origin;
  Mismatch m = mismatch_of(d, operand_name);
  m.captured.site = then.site.str();
  m.called.site = now.site.str();
  if (d.kind == ProgramDifference::Kind::literal) {
    const Type &type = first.graph->literal(first.node())->type, &type_now = second.graph->literal(second.node())->type;
    if (type == type_now)
      throw m.error(
          error_text("capture",
                     fmt::format("a constant {} differs between the first two calls of the step (first read at {}); pass it as "
                                 "an input, or make it a HostScalar",
                                 to_string(type), then.site.view()),
                     {}));
  }
  throw m.error(
      error_text("capture",
                 fmt::format("the step did something else on its second call: node {} was `{}` ({}), then `{}` ({}); {}",
                             first.id, first.graph->node_text(first.id), then.site.view(), second.graph->node_text(second.id),
                             now.site.view(), m.text()),
                 {}));
}

std::string node_made_at(const Graph& g, ValueId v) {
  const NodeId n = g.values[v].node;
  return n == kNone ? "" : g.nodes[n].origin.site.str();
}

// The first node of `g` that the other graph lacks.
MismatchSide extra_node(const Graph& g, const Graph& other) {
  if (g.node_count() <= other.node_count()) return {"the end", ""};
  const Node& n = g.nodes[other.nodes.size()];
  return {n.op->name, n.origin.site.str()};
}

Mismatch difference_of_results(const Graph& a, const Graph& b) {
  const auto count = [](const Graph& g) -> MismatchSide { return {fmt::format("{} results", g.outputs.size()), ""}; };
  if (a.outputs.size() != b.outputs.size()) return {MismatchKind::result_count, count(a), count(b)};
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    const auto result = [i](const Graph& g) -> MismatchSide {
      return {"%" + g.value_name(g.outputs[i]), node_made_at(g, g.outputs[i])};
    };
    if (a.outputs[i] != b.outputs[i]) return {MismatchKind::result, result(a), result(b)};
    if (a.output_names[i] != b.output_names[i])
      return {MismatchKind::result, {a.output_names[i].str(), ""}, {b.output_names[i].str(), ""}};
  }
  return {MismatchKind::result};
}

// The first write of state that is not the same, or that one of the graphs lacks.
Mismatch difference_of_writes(const Graph& a, const Graph& b) {
  std::size_t i = 0;
  const auto same = [&] { return a.updates[i].state == b.updates[i].state && a.updates[i].value == b.updates[i].value; };
  while (i < a.updates.size() && i < b.updates.size() && same()) ++i;
  const auto write = [i](const Graph& g) -> MismatchSide {
    if (i >= g.updates.size()) return {"nothing", ""};
    return {g.value_name(g.updates[i].state), node_made_at(g, g.updates[i].value)};
  };
  return {MismatchKind::write, write(a), write(b)};
}

CaptureMismatch difference_of_graphs(const ProgramDifference& d) {
  const Graph &a = *d.first().graph, &b = *d.second().graph;
  switch (d.kind) {
    case ProgramDifference::Kind::node_count:
      return Mismatch{MismatchKind::op_count, extra_node(a, b), extra_node(b, a)}.error(error_text(
          "capture",
          fmt::format("the step recorded {} nodes on its first call and {} on its second", a.node_count(), b.node_count()),
          {}));
    case ProgramDifference::Kind::inputs: {
      const auto count = [](const Graph& g) -> MismatchSide { return {fmt::format("{} inputs", g.n_inputs), ""}; };
      return Mismatch{MismatchKind::external_tensor, count(a), count(b)}.error(error_text(
          "capture", fmt::format("the step read {} inputs on its first call and {} on its second", a.n_inputs, b.n_inputs),
          {}));
    }
    case ProgramDifference::Kind::updates:
    case ProgramDifference::Kind::state:
      return difference_of_writes(a, b).error(error_text("capture", "the step wrote other state on its second call", {}));
    default:
      return difference_of_results(a, b).error(error_text("capture", "the step returned other results on its second call", {}));
  }
}

// A node that differs says more than a difference of the graphs as a whole, so that difference waits for the end.
void compare_graphs(const Graph& a, const Graph& b) {
  std::optional<CaptureMismatch> whole;
  const Graph* const graphs[] = {&a, &b};
  same_program(graphs, [&](const ProgramDifference& d) {
    if (d.first().id != kNone) refuse_node(d);
    if (!whole) whole = difference_of_graphs(d);
    return true;
  });
  if (whole) throw *whole;
}

// Tensors from outside that a recording uses. They are consecutive values of its graph.
struct Used {
  std::vector<Tensor> tensors;
  const Graph& graph;
  ValueId first;
};

MismatchSide used_tensor(const Used& used, std::size_t i) {
  const ValueId v = used.first + static_cast<ValueId>(i);
  for (const Node& n : used.graph.nodes) {
    const auto operands = used.graph.inputs(n);
    if (std::find(operands.begin(), operands.end(), v) != operands.end())
      return {used.tensors[i].name().str(), n.origin.site.str()};
  }
  return {used.tensors[i].name().str(), ""};
}

// A tensor made anew in every call cannot be what a replay reads and writes.
void compare_tensors(const Used& a, const Used& b, const char* what) {
  const auto count = [&](const Used& u) -> MismatchSide { return {fmt::format("{} {} tensors", u.tensors.size(), what), ""}; };
  if (a.tensors.size() != b.tensors.size())
    throw CaptureMismatch(MismatchKind::external_tensor, count(a), count(b),
                          error_text("capture",
                                     fmt::format("the step used {} {} tensors on its first call and {} on its second",
                                                 a.tensors.size(), what, b.tensors.size()),
                                     {}));
  for (std::size_t i = 0; i < a.tensors.size(); ++i)
    if (a.tensors[i].impl() != b.tensors[i].impl())
      throw CaptureMismatch(
          MismatchKind::external_tensor, used_tensor(a, i), used_tensor(b, i),
          error_text("capture",
                     fmt::format("the {} '{}' is another tensor on the second call of the step; make it once, outside", what,
                                 b.tensors[i].name().view()),
                     {}));
}

// The caller passes other declared inputs and other gradients in every call. The inputs between them were marked by their
// owners.
std::vector<Tensor> marked(const Captured& c) {
  std::vector<Tensor> tensors(c.inputs.begin() + c.declared_inputs, c.inputs.end());
  for (const TensorUse& use : c.uses) tensors.resize(tensors.size() - (use.grad_input != kNone ? 1 : 0));
  return tensors;
}

}  // namespace

void compare_recordings(const Captured& first, const Captured& second) {
  const auto inputs = [](const Captured& c) -> Used { return {marked(c), c.graph, c.declared_inputs}; };
  const auto state = [](const Captured& c) -> Used { return {c.state, c.graph, c.graph.n_inputs}; };
  compare_tensors(inputs(first), inputs(second), "input");
  compare_tensors(state(first), state(second), "state");
  compare_graphs(first.graph, second.graph);
}

std::string tensors_difference(const Captured& first, const Captured& second) {
  const auto same = [](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Tensor& x, const Tensor& y) { return x.impl() == y.impl(); });
  };
  if (first.declared_inputs != second.declared_inputs || first.declared_outputs != second.declared_outputs)
    return "inputs or results are others in number";
  if (!same(marked(first), marked(second))) return "other tensors are marked as inputs";
  if (!same(first.state, second.state)) return "other tensors are state";
  if (first.uses.size() != second.uses.size()) return "other tensors have gradients to do with";
  for (std::size_t i = 0; i < first.uses.size(); ++i) {
    const TensorUse &x = first.uses[i], &y = second.uses[i];
    const std::string name = x.input != kNone ? fmt::format("input {}", x.input)
                                              : fmt::format("'{}' {}", x.tensor.name().view(), to_string(x.tensor.type()));
    if (x.input != y.input || x.requires_grad != y.requires_grad || x.request != y.request || x.hooks != y.hooks)
      return name + " is asked other gradients of";
    if (x.grad != y.grad || x.grad_input != y.grad_input || x.grad_output != y.grad_output || x.clears_grad != y.clears_grad)
      return name + " has a gradient at one size and none at another";
  }
  return "";
}

}  // namespace tapedeck
