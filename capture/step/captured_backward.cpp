// The gradient of a captured step, in three steps:
//
//     find_operands   the inputs and state that the step read, and which of them want a gradient
//     generate        gradient() of the captured graph, cut down to the nodes that the gradients need
//     run             in the eager backward pass: an executor of that graph, made when it is first needed
#include <tapedeck/capture/step/captured_backward.h>

#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/replay/memory/state_value.h>
#include <tapedeck/capture/step/replay_recording.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ops/movement.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace tapedeck {

namespace {

// The nodes that the outputs need. Updates go, and so do calls of the host whose results are not read.
Graph needed_nodes(const Graph& graph) {
  std::vector<bool> needed(graph.values.size());
  for (ValueId v : graph.outputs) needed[v] = true;
  std::vector<bool> keep(graph.nodes.size());
  for (NodeId n = graph.node_count(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    bool any = false;
    for (std::int32_t k = 0; k < node.n_outputs; ++k) any = any || needed[node.first_output + k];
    if (!any) continue;
    keep[n] = true;
    for (ValueId v : graph.inputs(node)) needed[v] = true;
    for (ValueId v : graph.after(node)) needed[v] = true;
  }
  Rewriter rewriter(graph);
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (keep[n]) rewriter.copy(n);
  return rewriter.finish();
}

}  // namespace

CapturedBackward::CapturedBackward(const Captured& captured, PlanOptions plan, ExecutorOptions executor)
    : held_(captured.held), plan_options_(std::move(plan)), executor_options_(on_device_of(captured, std::move(executor))) {
  executor_options_.state = StateSharing::by_tensor;
  for (std::size_t i = 0; i < captured.differentiable.size(); ++i)
    if (captured.differentiable[i]) targets_.push_back(i);
  find_operands(captured);
  if (!captured.hidden_history.empty()) {
    problem_ =
        fmt::format("its gradient is steered by {}, which the captured graph does not show; capture the backward pass too",
                    captured.hidden_history);
    return;
  }
  try {
    generate(captured);
    problem_ = overwritten(captured);
  } catch (const GradientError& e) {
    problem_ = e.what();
  }
}

// Every tensor that the step took from outside, by value of the graph.
void CapturedBackward::find_operands(const Captured& captured) {
  const Graph& g = captured.graph;
  std::vector<bool> wants(static_cast<std::size_t>(g.n_inputs + g.n_state));
  std::unordered_map<const detail::TensorImpl*, bool> needs;
  for (const TensorUse& use : captured.uses) {
    if (use.input != kNone)
      wants[use.input] = use.requires_grad;
    else
      needs[use.tensor.impl()] = use.requires_grad;
  }
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) {
    Operand o;
    o.value = v;
    if (v < captured.declared_inputs)
      o.input = v;
    else
      o.tensor = v < g.n_inputs ? captured.inputs[v] : captured.state[v - g.n_inputs];
    o.wants_gradient = o.input != kNone ? wants[v] : needs.count(o.tensor.impl()) && needs[o.tensor.impl()];
    operands_.push_back(std::move(o));
  }
}

void CapturedBackward::generate(const Captured& captured) {
  std::vector<ValueId> targets, wrt;
  for (std::size_t i : targets_) targets.push_back(captured.graph.outputs[i]);
  for (const Operand& o : operands_)
    if (o.wants_gradient) wrt.push_back(o.value);
  GraphGradientOptions options;
  options.heads_as_inputs = true;
  options.allow_unreached = true;  // a result without a history takes part in no backward pass
  GraphGradient made = gradient(captured.graph, targets, wrt, options);
  made.graph.outputs = made.gradients;
  made.graph.output_names.assign(made.gradients.size(), Name());
  made.graph.updates.clear();
  graph_ = needed_nodes(made.graph);
  std::vector<bool> read(graph_.values.size());
  for (const Node& node : graph_.nodes)
    for (ValueId v : graph_.inputs(node)) read[v] = true;
  for (ValueId v : graph_.outputs) read[v] = true;
  for (const Operand& o : operands_) read_.push_back(read[made.moved[o.value]]);
}

// State that the step itself overwrites is gone when backward would read it.
std::string CapturedBackward::overwritten(const Captured& captured) const {
  for (const Update& u : captured.graph.updates)
    if (read_[u.state])
      return fmt::format("it reads the state '{}', which the step overwrites; capture the backward pass too",
                         captured.graph.value_name(u.state));
  return "";
}

std::vector<Tensor> CapturedBackward::attach(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results) {
  // The tape keeps the operands that backward reads, and checks that they were not written since. Others only carry gradients.
  std::vector<Tensor> xs;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Operand& o = operands_[i];
    if (o.wants_gradient || (problem_.empty() && read_[i])) xs.push_back(o.input == kNone ? o.tensor : inputs[o.input]);
  }
  std::vector<Tensor> targets;
  for (std::size_t i : targets_) targets.push_back(results[i]);
  const std::vector<Tensor> tracked = custom_gradient(
      xs, [&](const std::vector<Tensor>&) { return targets; },
      [self = shared_from_this()](const std::vector<Tensor>& operands, const std::vector<Tensor>&,
                                  const std::vector<Tensor>& dys) { return self->run(operands, dys); });
  std::vector<Tensor> all = results;
  for (std::size_t k = 0; k < targets_.size(); ++k) all[targets_[k]] = tracked[k];
  return all;
}

void CapturedBackward::make_executor() {
  Plan plan = plan_for(graph_, plan_options_, executor_options_);
  if (!plan.feasible) throw InfeasiblePlanError("backward", plan, "a captured step has no gradient: ");
  executor_ = std::make_unique<Executor>(std::move(plan), executor_options_);
  bases_.assign(static_cast<std::size_t>(graph_.n_state), nullptr);
}

// State is only read, so it is bound where it lies; a tensor with gaps is copied first. It is never set, because set_state()
// would write into the bound tensor.
void CapturedBackward::give_state(std::size_t state, const std::string& name, const Tensor& value) {
  const Tensor dense = contiguous(value);
  const void* const base = replay::bytes_of(dense);
  if (base && base == bases_[state]) return;
  executor_->bind_state(name, dense);
  bases_[state] = base;
}

std::vector<Tensor> CapturedBackward::run(const std::vector<Tensor>& xs, const std::vector<Tensor>& dys) {
  if (!problem_.empty()) throw GradientError(error_text("backward", "a captured step has no gradient: " + problem_, {}));
  if (thread_state().grad_enabled)
    throw GradientError(error_text(
        "backward", "a captured step gives no gradients of gradients; run it eagerly, or capture the backward pass too", {}));
  const auto n_inputs = static_cast<std::size_t>(graph_.n_inputs) - dys.size();  // of the captured graph
  if (!executor_) make_executor();
  const std::vector<std::string> state_names = executor_->state_names();
  std::size_t k = 0;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const bool given = operands_[i].wants_gradient || read_[i];
    if (!given && i >= n_inputs && bases_[i - n_inputs]) continue;
    // A value that no node reads is set to anything.
    const auto slot = static_cast<ValueId>(i < n_inputs ? i : i + dys.size());
    const Tensor value = given ? xs[k++] : default_value(graph_.values[slot].type, 0, "");
    if (i < n_inputs)
      executor_->set_input(static_cast<int>(i), value);
    else
      give_state(i - n_inputs, state_names[i - n_inputs], value);
  }
  for (std::size_t j = 0; j < dys.size(); ++j) executor_->set_input(static_cast<int>(n_inputs + j), dys[j]);
  const std::vector<Tensor> gradients = executor_->run_and_outputs();
  std::vector<Tensor> dxs;
  std::size_t next = 0;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].wants_gradient)
      dxs.push_back(gradients[next++]);
    else if (read_[i])
      dxs.emplace_back();
  }
  return dxs;
}

}  // namespace tapedeck
