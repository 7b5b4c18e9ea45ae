#include <tapedeck/capture/step/gradient_marks.h>

#include <unordered_map>
#include <unordered_set>

namespace tapedeck {

namespace {

// Whether `result` was computed from `v` by nodes of the update phase alone. The search goes from nearer nodes to farther ones,
// because an optimizer nearly always reads the gradient itself.
bool updates_with(const Graph& g, ValueId result, ValueId v) {
  std::vector<NodeId> queue;
  std::unordered_set<NodeId> seen;
  const auto visit = [&](ValueId x) {
    const NodeId n = g.values[x].node;
    if (n != kNone && g.nodes[n].origin.phase == Phase::update && seen.insert(n).second) queue.push_back(n);
  };
  visit(result);
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const ValueId x : g.inputs(g.nodes[queue[i]])) {
      if (x == v) return true;
      visit(x);
    }
  return false;
}

}  // namespace

std::vector<GradientMark> gradient_marks(const Captured& captured) {
  const Graph& g = captured.graph;
  std::unordered_map<const detail::TensorImpl*, ValueId> updated;  // the new value of a tensor that the step updates
  for (const Update& u : g.updates) updated[captured.state[u.state - g.n_inputs].impl()] = u.value;
  std::vector<GradientMark> marks;
  for (const TensorUse& use : captured.uses) {
    const bool writes = use.grad_output != kNone;
    const ValueId v = writes ? g.outputs[use.grad_output] : use.grad_input;  // an input has the number of its value
    const auto it = updated.find(use.tensor.impl());
    const bool uses = v != kNone && it != updated.end() && updates_with(g, it->second, v);
    marks.push_back(uses ? GradientMark::used : writes ? GradientMark::fresh : GradientMark::unchanged);
  }
  return marks;
}

}  // namespace tapedeck
