// How a recording is replayed:
//
//     bind_state    state that has moved is bound again to where its bytes are now
//     set_inputs    declared inputs, then marked ones (learning rates), then gradients that were there before
//     run           by the executor
//     gradients     set where the function would have set them
#include <tapedeck/capture/step/replay_recording.h>

#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/memory/state_value.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/gradient/fresh_gradient.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

// A constant that both recordings read as the same tensor belongs to the user, who may write it.
void keep_shared_constants(const Captured& first, Captured* second) {
  std::vector<Tensor> kept;
  for (std::size_t i = 0; i < second->constants.size(); ++i)
    if (second->constants[i].impl() == first.constants[i].impl()) kept.push_back(second->constants[i]);
  second->constants = std::move(kept);
}

// The state is the tensors of the user. A tensor whose bytes have moved is bound again.
void bind_state(Recording& r) {
  const Graph& g = r.captured->graph;
  for (std::size_t i = 0; i < r.bases.size(); ++i) {
    const void* base = replay::bytes_of(r.captured->state[i]);
    if (base == r.bases[i]) continue;
    r.executor->bind_state(g.values[static_cast<std::size_t>(g.n_inputs) + i].name.str(), r.captured->state[i]);
    r.bases[i] = base;
  }
}

Tensor used(const TensorUse& use, const std::vector<Tensor>& inputs) {
  return use.input == kNone ? use.tensor : inputs[use.input];
}

void set_inputs(Recording& r, const std::vector<Tensor>& inputs) {
  // Declared inputs come first, then marked ones (learning rates), whose tensors may have other values by now. Gradients come
  // last.
  const Captured& c = *r.captured;
  std::size_t n = c.inputs.size();
  for (const TensorUse& use : c.uses) {
    if (use.grad_input == kNone) continue;
    n = std::min(n, static_cast<std::size_t>(use.grad_input));
    r.executor->set_input(use.grad_input, used(use, inputs).grad());
  }
  for (std::size_t i = 0; i < n; ++i) r.executor->set_input(static_cast<int>(i), i < inputs.size() ? inputs[i] : c.inputs[i]);
}

// The marks of the gradients, as the function would have left them.
void mark_gradients(Recording& r, const std::vector<Tensor>& inputs) {
  if (r.marks.executor.lock() != r.executor) r.marks = {r.executor, gradient_marks(*r.captured)};
  for (std::size_t i = 0; i < r.marks.of_uses.size(); ++i) {
    const GradientMark mark = r.marks.of_uses[i];
    if (mark == GradientMark::unchanged) continue;
    const Tensor t = used(r.captured->uses[i], inputs);
    mark == GradientMark::fresh ? mark_grad_fresh(t) : mark_grad_used(t);
  }
}

}  // namespace

ExecutorOptions member_options(const Recording& r, ExecutorOptions executor, const char* what) {
  executor.name = fmt::format("{}{}({})", what, executor.name.empty() ? "step" : executor.name, types_text(r.types));
  return executor;
}

ExecutorOptions on_device_of(const Captured& captured, ExecutorOptions executor) {
  if (captured.device == "cpu") return executor;
  executor.device = captured.device;
  executor.results_on_device = true;
  executor.pool = nullptr;  // recordings on a device have the tensors of the user in common, and no arena
  return executor;
}

Plan plan_for(const Graph& graph, PlanOptions how, const ExecutorOptions& executor) {
  how.find_floor = false;  // a step does not tell its floor
  if (executor.device == "cpu") return make_plan(graph, how);
  if (how.level == OptimizationLevel::all) how.level = OptimizationLevel::fused;  // each node costs a launch
  return make_device_plan(graph, how, executor.device);
}

RecordingReplayer::RecordingReplayer(PlanOptions plan, ExecutorOptions executor)
    : plan_(std::move(plan)), executor_(std::move(executor)) {}

void RecordingReplayer::build(Recording& r, Captured captured) const {
  const ExecutorOptions executor = on_device_of(captured, member_options(r, executor_));
  Plan plan = plan_for(captured.graph, plan_, executor);
  if (!plan.feasible) throw InfeasiblePlanError("capture", plan);
  r.executor = std::make_unique<Executor>(std::move(plan), executor);
  keep_shared_constants(*r.first, &captured);
  r.first.reset();
  r.captured = std::move(captured);
  r.bases.assign(r.captured->state.size(), &r);  // no address of bytes: all state will be bound
  bind_state(r);
  r.watchlist.note(*r.captured);
}

std::vector<Tensor> RecordingReplayer::replay(Recording& r, const std::vector<Tensor>& inputs) const {
  bind_state(r);
  set_inputs(r, inputs);
  std::vector<Tensor> outputs = r.executor->run_and_outputs();  // if it throws before it writes state, nothing has happened
  r.draws.advance();
  for (const TensorUse& use : r.captured->uses) {
    if (use.grad_output != kNone)
      used(use, inputs).set_grad(outputs[use.grad_output]);
    else if (use.clears_grad)
      used(use, inputs).set_grad(Tensor());
  }
  mark_gradients(r, inputs);
  outputs.resize(static_cast<std::size_t>(r.captured->declared_outputs));
  return outputs;
}

}  // namespace tapedeck
