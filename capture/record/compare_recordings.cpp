// Two recordings of a step are one program if same_program() finds no difference and both use the same tensors.
//
//     first call                       second call
//     %h = add(%x, constant 2)         %h = add(%x, constant 3)      error: the constant differs; pass it as an input
//     %h = exp(%x)                     %h = tanh(%x)                 error: the step did something else
//     state: tensor 'w'                state: another tensor 'w'     error: make the tensor once, outside
#include <tapedeck/capture/record/compare_recordings.h>

#include <tapedeck/capture/analysis/same_program.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

// The first two recordings must be the same program with the same constants; the first node that differs is an error that says
// what to do.
[[noreturn]] void refuse_node(const ProgramDifference& d) {
  const ProgramSide &first = d.first(), &second = d.second();
  const Origin &then = first.node().origin, &now = second.node().origin;
  if (d.kind == ProgramDifference::Kind::literal) {
    const Type &type = first.graph->literal(first.node())->type, &type_now = second.graph->literal(second.node())->type;
    if (type == type_now)
      throw CaptureError(
          error_text("capture",
                     fmt::format("a constant {} differs between the first two calls of the step (first read at {}); pass it as "
                                 "an input, or make it a HostScalar",
                                 to_string(type), then.site.view()),
                     {}));
  }
  throw CaptureError(error_text(
      "capture",
      fmt::format("the step did something else on its second call: node {} was `{}` ({}), then `{}` ({})", first.id,
                  first.graph->node_text(first.id), then.site.view(), second.graph->node_text(second.id), now.site.view()),
      {}));
}

std::string difference_of_graphs(const ProgramDifference& d) {
  switch (d.kind) {
    case ProgramDifference::Kind::node_count:
      return fmt::format("the step recorded {} nodes on its first call and {} on its second", d.first().graph->node_count(),
                         d.second().graph->node_count());
    case ProgramDifference::Kind::updates:
    case ProgramDifference::Kind::state:
      return "the step wrote other state on its second call";
    default:
      return "the step returned other results on its second call";
  }
}

// A node that differs says more than a difference of the graphs as a whole, so that difference waits for the end.
void compare_graphs(const Graph& a, const Graph& b) {
  std::string whole;
  const Graph* const graphs[] = {&a, &b};
  same_program(graphs, [&](const ProgramDifference& d) {
    if (d.first().id != kNone) refuse_node(d);
    if (whole.empty()) whole = difference_of_graphs(d);
    return true;
  });
  if (!whole.empty()) throw CaptureError(error_text("capture", whole, {}));
}

// A tensor made anew in every call cannot be what a replay reads and writes.
void compare_tensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const char* what) {
  if (a.size() != b.size())
    throw CaptureError(error_text(
        "capture", fmt::format("the step used {} {} tensors on its first call and {} on its second", a.size(), what, b.size()),
        {}));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].impl() != b[i].impl())
      throw CaptureError(
          error_text("capture",
                     fmt::format("the {} '{}' is another tensor on the second call of the step; make it once, outside", what,
                                 b[i].name().view()),
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
  compare_tensors(marked(first), marked(second), "input");
  compare_tensors(first.state, second.state, "state");
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
