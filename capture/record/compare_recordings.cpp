#include <tapedeck/capture/record/compare_recordings.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tapedeck {

namespace {

bool same_literal(const Literal& a, const Literal& b) {
  if (a.type != b.type || !a.data != !b.data) return false;
  return !a.data || std::memcmp(a.data.get(), b.data.get(), static_cast<std::size_t>(a.type.bytes())) == 0;
}

// Two recordings must be the same program with the same constants; the first difference is an error that says what to do.
void compare_graphs(const Graph& a, const Graph& b) {
  const NodeId n = std::min(a.node_count(), b.node_count());
  for (NodeId i = 0; i < n; ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    const Literal *p = a.literal(x), *q = b.literal(y);
    if (p && q && p->type == q->type && !same_literal(*p, *q))
      throw CaptureError(
          fmt::format("[capture] a constant {} differs between the first two calls of the step (first read at {}); pass it as "
                      "an input, or make it a HostScalar",
                      to_string(p->type), x.origin.site.view()));
    const bool same_inputs = std::equal(a.inputs(x).begin(), a.inputs(x).end(), b.inputs(y).begin(), b.inputs(y).end());
    if (x.op != y.op || !same_inputs || a.output_types(x) != b.output_types(y) || (!p && !same_attributes(a, x, b, y)))
      throw CaptureError(
          fmt::format("[capture] the step did something else on its second call: node {} was `{}` ({}), then `{}` ({})", i,
                      a.node_text(i), x.origin.site.view(), b.node_text(i), y.origin.site.view()));
  }
  if (a.node_count() != b.node_count())
    throw CaptureError(fmt::format("[capture] the step recorded {} nodes on its first call and {} on its second",
                                   a.node_count(), b.node_count()));
  const bool same_updates =
      std::equal(a.updates.begin(), a.updates.end(), b.updates.begin(), b.updates.end(),
                 [](const Update& x, const Update& y) { return x.state == y.state && x.value == y.value; });
  if (!same_updates) throw CaptureError("[capture] the step wrote other state on its second call");
  if (a.n_inputs != b.n_inputs || a.outputs != b.outputs || a.output_names != b.output_names)
    throw CaptureError("[capture] the step returned other results on its second call");
}

// A tensor made anew in every call cannot be what a replay reads and writes.
void compare_tensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const char* what) {
  if (a.size() != b.size())
    throw CaptureError(
        fmt::format("[capture] the step used {} {} tensors on its first call and {} on its second", a.size(), what, b.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].impl() != b[i].impl())
      throw CaptureError(
          fmt::format("[capture] the {} '{}' is another tensor on the second call of the step; make it once, outside", what,
                      b[i].name().view()));
}

// Declared inputs are others in every call, and so are gradients; what stands between was marked as an input by its owner.
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
