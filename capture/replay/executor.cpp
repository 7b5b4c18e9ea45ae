// The executor: its components are made in order and wired to the public calls. The header of each describes it.
//
//     set_input   InputSlots, Buffers        set_state, bind_state   StateSlots
//     run         StepRunner, SegmentWalk    run(Phase), step, ...   PartialStep
//     monitor     ObservedRun                output, value           Results
//     inspect     Inspector                  keep_steps, back        KeptStep
//
// Every public call holds Busy: the calls of all executors on one memory come one at a time. A call that needs more of a
// launched step than that it was launched waits for it (Settled).
#include <tapedeck/capture/replay/executor_impl.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/parallel.h>

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

using replay::Busy;

Plan checked(Plan plan) {
  const std::vector<std::string> violations = check_plan(plan);
  if (!violations.empty()) throw InvalidGraphError("the plan breaks its own rules: " + violations.front());
  if (!plan.feasible) throw InfeasiblePlanError("", plan, "this plan does not fit its budget: ");
  for (const Update& u : plan.graph.updates) {
    const Placement& p = plan.values[u.value];
    const std::int32_t slot = u.state - plan.graph.n_inputs;
    if (p.where != Where::state || p.slot != slot || p.offset != 0 || !p.dense)
      throw InvalidGraphError(
          fmt::format("the plan leaves the new value of state %{} outside its buffer", plan.graph.value_name(u.state)));
  }
  return plan;
}

// Opens the device of the options, which a replay there must allow.
std::shared_ptr<kernels::cuda::DeviceRuntime> runtime_of(const ExecutorOptions& options) {
  std::shared_ptr<kernels::cuda::DeviceRuntime> runtime = open_device(options.device);
  if (!runtime) return runtime;
  const auto refuse = [&](const char* what) {
    throw UsageError(fmt::format("{} and device '{}' exclude each other: a replay on the CPU has it", what, options.device));
  };
  if (options.pool) refuse("a pool of executors");
  if (settings().poison) refuse("TAPEDECK_POISON");
  if (settings().check_nan) refuse("TAPEDECK_CHECK_NAN");
  return runtime;
}

// A call that holds Busy, and begins once the steps that were launched have come to their end.
class Settled {
 public:
  Settled(replay::Memory& memory, const char* what, Name member, replay::StepRunner& runner) : busy_(memory, what, member) {
    runner.synchronize();
  }

 private:
  const Busy busy_;
};

int checked_threads(const ExecutorOptions& options) {
  if (options.threads < 0)
    throw UsageError(fmt::format("{} threads asked for; 0 means as many as eager ops use", options.threads));
  return options.threads;
}

}  // namespace

// ---- making and unmaking ----

Executor::Impl::Shared Executor::Impl::memory_of(const ExecutorOptions& options) {
  return {options.pool ? options.pool->memory() : std::make_shared<replay::Memory>(), std::make_shared<replay::Family>()};
}

Executor::Impl::Impl(Plan p, const ExecutorOptions& o, Shared shared)
    : Member(std::move(shared.memory), std::move(shared.family)),
      plan(checked(std::move(p))),
      options(o),
      runtime(runtime_of(options)),
      buffers(plan, *this),
      inputs(plan),
      states(plan, *this, options.state),
      kept(plan, *this, inputs, states),
      program(plan, buffers.table(), runtime.get()),
      walk(plan, program, checked_threads(options)),
      observed(plan, program, walk, buffers, kept, memory->poison, settings().check_nan),
      progress(plan, *this),
      uses(plan, program, progress),
      results(plan, *this, buffers, inputs, states, observed, progress, uses),
      runner(plan, *this, buffers, inputs, states, kept, program, walk, observed, progress, results),
      partial(plan, *this, inputs, states, kept, program, walk, observed, progress, uses, runner),
      inspector(plan, buffers, inputs, states, kept, progress, uses, results) {
  name = options.name.empty() ? plan.graph.name : Name(options.name);
}

Executor::Impl::Impl(Plan p, const ExecutorOptions& o) : Impl(std::move(p), o, memory_of(o)) {
  states.find_in_memory();
  buffers.allocate();
  finish();
}

Executor::Impl::Impl(Plan p, const Impl& parent, bool allow_up_sizing)
    : Impl(std::move(p), parent.options, {parent.memory, parent.family}) {
  buffers.check_arena(allow_up_sizing);
  states.share(parent.states);
  buffers.share(parent.buffers, allow_up_sizing);
  inputs.share(parent.inputs, buffers, parent.buffers);
  finish();
}

// From the last line on the memory knows this executor.
void Executor::Impl::finish() {
  buffers.fill_constants();
  const replay::BufferTable& table = buffers.table();
  if (runtime) {  // the arena is there, and none on the host
    device = std::make_unique<replay::DeviceStep>(runtime, plan, *this, buffers, program, options.cuda_graphs, options.threads,
                                                  options.state == StateSharing::by_tensor);
    buffers.read_from(device.get());
    runner.run_on(device.get());
    if (options.results_on_device) {
      join_ops();
      results.give_on(options.device);
    }
  }
  for (std::int32_t c = 0; !device && c < table.chunks.count(); ++c) chunks.push_back(table.chunks.bytes(c));
  peak_bytes = plan.peak_bytes;
  for (ValueId v : plan.graph.outputs) returns_state |= plan.values[v].where == Where::state;
  memory->join(*this);
}

// If this executor is in the middle of a step that has written state, no other can run, so the wait is short.
Executor::Impl::~Impl() {
  if (progress.under_way()) {
    const Busy busy(*memory);
    runner.drop();
  }
  memory->leave(*this);
}

void Executor::Impl::set_input(std::int32_t slot, const Tensor& value) {
  inputs.check(slot, value);
  const replay::BufferId b = buffers.table().input(slot);
  if (buffers.is_shared(b)) memory->claim(*this);
  const bool in_step = progress.under_way();
  if (in_step) partial.check_unread(slot);
  results.keep_those_in(b);
  if (shares_device(value)) {
    device->set_input(slot, value);
  } else {
    buffers.write(b, value);
    if (device) device->input_changed(slot);
  }
  inputs.mark_set(slot, in_step);
}

void Executor::Impl::join_ops() {
  if (ops) return;
  ops = find_eager_device(options.device);
  device->join_ops(*ops);
}

bool Executor::Impl::shares_device(const Tensor& value) {
  EagerDevice* const its = replay::device_of(value);
  if (!its || !device || its != find_eager_device(options.device)) return false;
  join_ops();
  return true;
}

void Executor::Impl::refuse_on_device(const char* what) const {
  if (device)
    throw UsageError(
        fmt::format("{}: a replay on device '{}' runs whole steps only; do this on the CPU", what, options.device));
}

// ---- the public face ----

Executor::Executor(Plan plan, const ExecutorOptions& options) : impl_(std::make_unique<Impl>(std::move(plan), options)) {
  if (!options.pool) impl_->memory->settle_arena();  // a pool's waits for the first run, when all have joined
}
Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

const Plan& Executor::plan() const { return impl_->plan; }
std::vector<std::string> Executor::state_names() const { return impl_->states.names(); }
std::vector<std::string> Executor::input_names() const { return impl_->inputs.names(); }
std::int64_t Executor::observed_peak_bytes() const {
  return impl_->device ? impl_->device->counters().allocated_bytes : impl_->memory->count.stats().peak_bytes;
}

DeviceCounters Executor::device_counters() const {
  const Busy busy(*impl_->memory, "device_counters", impl_->name);
  return impl_->device ? impl_->device->counters() : DeviceCounters();
}

void Executor::set_input(const std::string& name, const Tensor& value) {
  const std::vector<std::string>&inputs = impl_->inputs.names(), &outputs = impl_->results.names();
  const bool head = name.starts_with("grad.") && std::find(outputs.begin(), outputs.end(), name.substr(5)) != outputs.end();
  if (head && std::find(inputs.begin(), inputs.end(), name) == inputs.end())
    throw UsageError(fmt::format(
        "no input named '{}': the gradient that backward starts from is part of this graph; to give it, make the graph with "
        "gradient() and heads_as_inputs, or pass it into the step",
        name));
  set_input(impl_->inputs.find(name), value);
}

void Executor::set_input(int index, const Tensor& value) {
  if (index < 0 || index >= static_cast<int>(impl_->inputs.names().size()))
    throw UsageError(fmt::format("no input {}: the graph has {}", index, impl_->inputs.names().size()));
  const Busy busy(*impl_->memory, "set_input", impl_->name);
  impl_->set_input(index, value);
}

void Executor::set_state(const std::string& name, const Tensor& value) {
  const std::int32_t slot = impl_->states.find(name);
  const Settled settled(*impl_->memory, "set_state", impl_->name, impl_->runner);
  impl_->states.check(slot, value);
  impl_->runner.refuse_mid_step("set_state");
  impl_->states.set(slot, value);
  if (impl_->device) impl_->device->state_changed(slot);
}

void Executor::bind_state(const std::string& name, const Tensor& value) {
  const std::int32_t slot = impl_->states.find(name);
  const Settled settled(*impl_->memory, "bind_state", impl_->name, impl_->runner);
  impl_->states.check_bindable(slot, value);
  if (EagerDevice* const its = replay::device_of(value); its && !impl_->shares_device(value))
    throw DeviceError(
        fmt::format("state '{}' is on {}, and the executor of '{}' runs on {}: it can be set there, and not bound", name,
                    its->name(), impl_->name.view(), impl_->options.device));
  impl_->runner.refuse_mid_step("bind_state");
  impl_->states.bind(slot, value);
  if (impl_->device) impl_->device->state_changed(slot);
}

Tensor Executor::state(const std::string& name) const {
  const std::int32_t slot = impl_->states.find(name);
  const Settled settled(*impl_->memory, "state", impl_->name, impl_->runner);
  return impl_->states.read(slot, impl_->buffers);
}

void Executor::run() {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->runner.run(nullptr);
}

void Executor::launch() {
  const Busy busy(*impl_->memory, "launch", impl_->name);
  impl_->runner.launch();
}

void Executor::synchronize() { const Settled settled(*impl_->memory, "synchronize", impl_->name, impl_->runner); }

std::vector<Tensor> Executor::run_and_outputs() {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->runner.run(nullptr);
  return impl_->results.outputs();
}

void Executor::run(Timeline* timeline) { run(RunOptions{.timeline = timeline}); }

void Executor::run(const RunOptions& options) {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->runner.run(&options);
}

void Executor::run(Phase phase, const RunOptions& options) {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->refuse_on_device("run of a phase");
  impl_->partial.run_phase(phase, options);
}

std::int32_t Executor::step(std::int32_t n) {
  const Busy busy(*impl_->memory, "step", impl_->name);
  impl_->refuse_on_device("step");
  if (n < 0) throw UsageError(fmt::format("step: {} nodes", n));
  return impl_->partial.run_nodes(n);
}

std::int32_t Executor::run_to(const std::string& value) {
  const Busy busy(*impl_->memory, "run_to", impl_->name);
  impl_->refuse_on_device("run_to");
  const NodeId node = impl_->plan.graph.values[impl_->results.find_value(value)].node;
  if (node == kNone) throw UsageError(fmt::format("run_to: no node makes '{}'", value));
  if (impl_->progress.under_way() && impl_->progress.has_run(node))
    throw UsageError(fmt::format("run_to: the node that makes '{}' has run already", value));
  return impl_->partial.run_through(node);
}

void Executor::resume(const RunOptions& options) {
  const Busy busy(*impl_->memory, "resume", impl_->name);
  impl_->refuse_on_device("resume");
  impl_->partial.resume(options);
}

void Executor::restart() {
  const Busy busy(*impl_->memory, "restart", impl_->name);
  impl_->runner.drop();
}

std::int32_t Executor::nodes_left() const {
  const Busy busy(*impl_->memory, "nodes_left", impl_->name);
  return impl_->progress.under_way() ? impl_->progress.left() : 0;
}

Tensor Executor::value(const std::string& name) const {
  const Settled settled(*impl_->memory, "value", impl_->name, impl_->runner);
  return impl_->results.value(impl_->results.find_value(name));
}

void Executor::keep_steps(bool keep) {
  const Busy busy(*impl_->memory, "keep_steps", impl_->name);
  impl_->refuse_on_device("keep_steps");
  impl_->runner.refuse_mid_step("keep_steps");
  impl_->kept.keep(keep);
}

std::int64_t Executor::kept_bytes() const {
  const Busy busy(*impl_->memory, "kept_bytes", impl_->name);
  return impl_->kept.bytes();
}

Stop Executor::run_until(const Breakpoints& breakpoints) {
  const Busy busy(*impl_->memory, "run_until", impl_->name);
  impl_->refuse_on_device("run_until");
  return impl_->partial.run_until(breakpoints);
}

std::int32_t Executor::back(std::int32_t n) {
  const Busy busy(*impl_->memory, "back", impl_->name);
  impl_->refuse_on_device("back");
  if (n < 0) throw UsageError(fmt::format("back: {} nodes", n));
  return impl_->partial.back(n);
}

Inspected Executor::inspect(const std::string& name) const {
  const Busy busy(*impl_->memory, "inspect", impl_->name);
  impl_->refuse_on_device("inspect");
  const kernels::OneThreadScope alone(impl_->options.threads == 1);
  return impl_->inspector.inspect(impl_->results.find_value(name));
}

Inspected Executor::inspect(ValueId value) const {
  const Busy busy(*impl_->memory, "inspect", impl_->name);
  impl_->refuse_on_device("inspect");
  if (value < 0 || value >= impl_->plan.graph.value_count())
    throw UsageError(fmt::format("inspect: the plan's graph has no value {}", value));
  const kernels::OneThreadScope alone(impl_->options.threads == 1);
  return impl_->inspector.inspect(value);
}

std::int32_t Executor::monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options) {
  const Busy busy(*impl_->memory, "monitor", impl_->name);
  impl_->refuse_on_device("monitor");
  return impl_->observed.add_monitor(pattern, std::move(fn), options);
}

void Executor::remove_monitor(std::int32_t id) {
  const Busy busy(*impl_->memory, "remove_monitor", impl_->name);
  impl_->observed.remove_monitor(id);
}

std::vector<Tensor> Executor::outputs() const {
  const Settled settled(*impl_->memory, "outputs", impl_->name, impl_->runner);
  return impl_->results.outputs();
}

Tensor Executor::output(const std::string& name) const {
  const std::size_t index = impl_->results.find(name);
  const Settled settled(*impl_->memory, "output", impl_->name, impl_->runner);
  return impl_->results.output(index);
}

}  // namespace tapedeck
