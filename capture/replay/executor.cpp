// The executor: its buffers, what comes in and what goes out. The run itself is run.cpp, the program it walks
// program.cpp.
#include <tapedeck/capture/replay/executor_impl.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

namespace tapedeck {

std::string replay::listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

namespace {

using replay::BufferId;
using replay::Busy;
using replay::listed;

Plan checked(Plan plan) {
  if (!plan.feasible) throw UsageError("this plan does not fit its budget: " + plan.infeasible_reason);
  const std::vector<std::string> violations = check_plan(plan);
  if (!violations.empty()) throw InvalidGraphError("the plan breaks its own rules: " + violations.front());
  for (const Update& u : plan.graph.updates) {
    const Placement& p = plan.values[u.value];
    const std::int32_t slot = u.state - plan.graph.n_inputs;
    if (p.where != Where::state || p.slot != slot || p.offset != 0 || !p.dense)
      throw InvalidGraphError(
          fmt::format("the plan leaves the new value of state %{} outside its buffer", plan.graph.value_name(u.state)));
  }
  return plan;
}

int checked_threads(const ExecutorOptions& options) {
  if (options.device == "cuda") {
    const kernels::cuda::CudaStatus& status = kernels::cuda::cuda_status();
    throw DeviceError(status.available ? "CUDA replay is not part of this version" : status.reason);
  }
  if (options.device != "cpu") throw UsageError("no device '" + options.device + "' (devices: cpu, cuda)");
  if (options.threads < 0)
    throw UsageError(fmt::format("{} threads asked for; 0 means as many as the machine has", options.threads));
  return options.threads;
}

}  // namespace

Executor::Impl::Impl(Plan p, const ExecutorOptions& o)
    : Member(o.pool ? o.pool->memory() : std::make_shared<replay::Memory>()),
      plan(checked(std::move(p))),
      table(plan),
      options(o),
      program(plan, table),
      threads(checked_threads(o)) {
  prepare();
  find_state();
  allocate_buffers();
  fill_constants();
  prepare_segments();
  join();
}

Executor::Impl::Impl(Plan p, const Impl& parent, bool allow_up_sizing)
    : Member(parent.memory, parent.family),
      plan(checked(std::move(p))),
      table(plan),
      options(parent.options),
      program(plan, table),
      threads(checked_threads(options)) {
  prepare();
  share_buffers(parent, allow_up_sizing);
  fill_constants();
  prepare_segments();
  join();
}

// In the middle of a step that has written state nobody else can run, so the wait is short.
Executor::Impl::~Impl() {
  if (under_way()) {
    const Busy busy(*memory);
    drop_step();
  }
  memory->leave(*this);
}

void Executor::Impl::prepare() {
  const Graph& g = plan.graph;
  name = options.name.empty() ? g.name : Name(options.name);
  for (ValueId v = 0; v < g.n_inputs; ++v) input_names.push_back(g.value_name(v));
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) state_names.push_back(g.value_name(v));
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const bool named = i < g.output_names.size() && !g.output_names[i].empty();
    output_names.push_back(named ? g.output_names[i].str() : g.value_name(g.outputs[i]));
  }
  input_set.resize(input_names.size());
  state_written.resize(state_names.size());
  state_stamps.resize(state_names.size());
  bound_versions.resize(state_names.size());
  written_in_step.resize(state_names.size());
  kept_outputs.resize(g.outputs.size());
  lost_outputs.resize(g.outputs.size());
  for (const Update& u : g.updates) state_written[u.state - g.n_inputs] = u.value != u.state;
  buffers.resize(table.bytes.size());
  bases.resize(table.bytes.size());
  if (memory->poison == 0) return;
  std::vector<bool> called(g.nodes.size());
  for (const replay::Step& step : program.steps) called[step.node] = true;
  poison = std::make_unique<replay::Poison>(plan, called, memory->poison);
}

// The memory's state values, or new ones among them. They get bytes with their first value: what is bound needs none of ours.
void Executor::Impl::find_state() {
  const Graph& g = plan.graph;
  for (std::size_t s = 0; s < state_names.size(); ++s) {
    const Type& type = g.values[static_cast<std::size_t>(g.n_inputs) + s].type;
    state.push_back(options.state == StateSharing::by_name ? memory->state_named(state_names[s], type, name)
                                                           : memory->state_apart(state_names[s], type, name));
  }
}

void Executor::Impl::allocate_buffers() {
  for (BufferId b = 1; b < static_cast<BufferId>(bases.size()); ++b) {
    if (table.bytes[b] < 0 || table.is_state(b) || table.is_chunk(b)) continue;
    buffers[b] = std::make_shared<Buffer>(allocator, table.bytes[b]);
    bases[b] = buffers[b]->data();
  }
}

// Last of construction: from here on the memory knows this executor.
void Executor::Impl::join() {
  for (std::int32_t c = 0; c < table.chunks.count(); ++c) chunks.push_back(table.chunks.bytes(c));
  peak_bytes = plan.peak_bytes;
  for (ValueId v : plan.graph.outputs) returns_state |= plan.values[v].where == Where::state;
  memory->join(*this);
}

// The arena and state are wherever they are by now.
void Executor::Impl::follow_memory() {
  const std::vector<void*>& blocks = memory->settle_arena();
  for (std::int32_t c = 0; c < table.chunks.count(); ++c) set_base(table.chunk(c), blocks[c]);
  if (seen_changes == memory->changes) return;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(state.size()); ++s) set_base(table.state(s), state[s]->base);
  seen_changes = memory->changes;
}

void* Executor::Impl::base_of(BufferId buffer) const {
  return table.is_state(buffer) ? state[buffer - table.first_state]->base : bases[buffer];
}

std::int32_t Executor::Impl::find(const std::vector<std::string>& names, const char* kind, const std::string& name) const {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) throw UsageError(fmt::format("no {} named '{}' ({}: {})", kind, name, kind, listed(names)));
  return static_cast<std::int32_t>(it - names.begin());
}

void Executor::Impl::check_type(const char* kind, const std::string& name, const Type& wanted, const Tensor& value) const {
  if (!value.defined())
    throw TypeError(fmt::format("{} '{}' wants {}, an undefined tensor was given", kind, name, to_string(wanted)));
  if (value.type() != wanted)
    throw TypeError(fmt::format("{} '{}' is {}, the graph wants {}", kind, name, to_string(value.type()), to_string(wanted)));
  if (value.abstract()) throw TypeError(fmt::format("{} '{}' is an abstract tensor: it has no data", kind, name));
}

void Executor::Impl::set_base(BufferId buffer, void* base) {
  moved |= bases[buffer] != base;
  bases[buffer] = base;
}

void Executor::Impl::fill_constants() {
  for (std::size_t c = 0; c < plan.graph.constants.size(); ++c) {
    const BufferId b = table.constant(static_cast<std::int32_t>(c));
    if (table.bytes[b] > 0) std::memcpy(bases[b], plan.graph.constants[c].data.get(), static_cast<std::size_t>(table.bytes[b]));
  }
}

// ---- what comes in ----

void Executor::Impl::set_input(std::int32_t slot, const Tensor& value) {
  const BufferId b = table.input(slot);
  check_type("input", input_names[slot], plan.graph.values[slot].type, value);
  if (buffers[b].use_count() > 1 && memory->step_of) claim_memory();  // a family has one buffer
  if (under_way()) check_unread(slot);
  keep_outputs_of(b);
  value.copy_to(bases[b], static_cast<std::size_t>(table.bytes[b]), dtype_size(value.dtype()));
  input_set[slot] = true;
}

void Executor::Impl::set_state(std::int32_t slot, const Tensor& value) {
  check_type("state", state_names[slot], plan.graph.values[plan.graph.n_inputs + slot].type, value);
  refuse_mid_step("set_state");
  replay::StateValue& mine = *state[slot];
  if (value.impl() != mine.bound.impl()) {
    memory->before_write(mine);
    mine.own();
    value.copy_to(mine.base, static_cast<std::size_t>(mine.type.bytes()), dtype_size(value.dtype()));
    if (mine.bound.defined()) mine.note_write();
  }
  memory->set(mine);
}

// Nothing is changed by what is refused.
void Executor::Impl::bind_state(std::int32_t slot, const Tensor& value) {
  check_type("state", state_names[slot], plan.graph.values[plan.graph.n_inputs + slot].type, value);
  if (!value.dense()) throw TypeError(fmt::format("state '{}' must be dense to be bound", state_names[slot]));
  value.data();  // not inside a capture, which would not see what is written there
  const auto at = static_cast<std::size_t>(slot);
  memory->check_apart(*this, at, value);
  refuse_mid_step("bind_state");
  if (!state[at]->is_bound_to(value)) {
    if (options.state == StateSharing::by_tensor) {
      memory->point_at(*this, at, value);
    } else {
      memory->before_write(*state[at]);  // as good as that: for all who have it, other bytes are there
      memory->bind(*this, at, value);
    }
  }
  memory->set(*state[at]);
}

void Executor::Impl::refuse_mid_step(const char* what) {
  if (memory->step_of) claim_memory();
  if (under_way())
    throw ExecutionError(fmt::format("{}: a step is under way ({}); resume() finishes it, restart() drops it", what, due()));
}

// ---- results ----

// A dense copy that belongs to the caller.
Tensor Executor::Impl::read(ValueId v) const {
  static const Op* const copy = find_op("copy");
  Tensor out = empty(plan.graph.values[v].type);
  if (out.numel() == 0) return out;
  replay::Window from = replay::window_of(plan, table, v);
  from.view.data = static_cast<char*>(base_of(from.buffer)) + from.offset;
  if (from.view.dense()) {
    std::memcpy(out.mutable_data(), from.view.data, static_cast<std::size_t>(out.bytes()));
    return out;
  }
  View to = from.view;
  to.data = out.mutable_data();
  std::copy_n(out.strides(), to.rank, to.strides);
  KernelFault fault;
  KernelCall call;
  call.inputs = &from.view;
  call.outputs = &to;
  call.n_inputs = call.n_outputs = 1;
  call.fault = &fault;
  copy->kernels[static_cast<int>(DeviceType::cpu)](call);
  return out;
}

// What the caller's tensors were like when the step ended: he may write them as he likes, and results may lie in them.
void Executor::Impl::note_versions() {
  for (std::size_t s = 0; s < state.size(); ++s)
    if (state[s]->bound.defined()) bound_versions[s] = state[s]->version();
}

// The caller may have written bound tensors between two parts of a step. What no node has used yet the rest reads as it is now,
// like inputs; what no node will read any more is his from here on. Where nodes have used the old bytes and others are still to
// read them, the step ends.
void Executor::Impl::heed_callers_writes() {
  const Graph& g = plan.graph;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(state.size()); ++s) {
    if (!state[s]->bound.defined() || state[s]->version() == bound_versions[s]) continue;
    if (const NodeId reader = stale_reader(s); reader != kNone) {
      const bool torn = memory->step_wrote;
      drop_step();
      throw ExecutionError(fmt::format(
          "the step has ended: the tensor bound to state '{}' was written in the middle of it, and `{}` was still to read "
          "what earlier nodes had used; write it before the step or after it{}",
          state_names[s], g.node_text(reader),
          torn ? "; state had been written already, so it must be set again before the next run" : ""));
    }
    const auto is_to_come = [&](const Update& u) { return u.state == g.n_inputs + s && !has_run(g.values[u.value].node); };
    if (std::none_of(g.updates.begin(), g.updates.end(), is_to_come)) written_in_step[s] = true;
  }
}

// A node to come that reads the bytes of a state which nodes that have run read or wrote; kNone if there is none.
NodeId Executor::Impl::stale_reader(std::int32_t slot) const {
  const Graph& g = plan.graph;
  const auto lies_there = [&](ValueId v) {
    const Placement& p = plan.values[parts->owner[v]];
    return p.where == Where::state && p.slot == slot;
  };
  NodeId reader = kNone;
  bool used = false;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    if (!parts->called[n]) continue;
    const auto operands = g.inputs(g.nodes[n]);
    const bool reads = std::any_of(operands.begin(), operands.end(), lies_there);
    bool uses = reads;
    for (std::int32_t k = 0; k < g.nodes[n].n_outputs; ++k) uses |= lies_there(g.nodes[n].first_output + k);
    if (has_run(n))
      used |= uses;
    else if (reads && reader == kNone)
      reader = n;
  }
  return used ? reader : kNone;
}

bool Executor::Impl::written_by_caller(ValueId v) const {
  const Placement& p = plan.values[v];
  return p.where == Where::state && state[p.slot]->bound.defined() &&
         (written_in_step[p.slot] || state[p.slot]->version() != bound_versions[p.slot]);
}

// A value in the bytes of bound state is gone once the caller has written his tensor: nobody could keep it for him.
void Executor::Impl::gone_to_caller(ValueId v) const {
  gone(v, fmt::format("it lies in state '{}', and the tensor bound to that has been written since",
                      state_names[plan.values[v].slot]));
}

// Names the graph, the node and its line.
void Executor::Impl::gone(ValueId v, const std::string& why) const {
  const NodeId maker = plan.graph.values[v].node;
  std::string made;
  if (maker != kNone) {
    const Name site = plan.graph.nodes[maker].origin.site;
    made = fmt::format("; made by [{}] {}{}", plan.graph.nodes[maker].op->name, plan.graph.node_text(maker),
                       site.empty() ? "" : fmt::format(" ({})", site.view()));
  }
  throw ExecutionError(
      fmt::format("%{} of '{}' is not there any more: {}{}", plan.graph.value_name(v), name.view(), why, made));
}

Tensor Executor::Impl::read_state(std::int32_t slot) const {
  if (!state[slot]->set && !state[slot]->torn) throw ExecutionError(fmt::format("state '{}' was never set", state_names[slot]));
  const Type& type = plan.graph.values[plan.graph.n_inputs + slot].type;
  if (type.bytes() == 0) return empty(type);
  return from_bytes(type, base_of(table.state(slot)));
}

// Outputs that live in a buffer about to be set anew are copied out first: they stay those of the last run, unless the caller
// has written there before.
void Executor::Impl::keep_outputs_of(BufferId buffer) {
  if (!has_outputs) return;
  for (std::size_t i = 0; i < plan.graph.outputs.size(); ++i) {
    const ValueId v = plan.graph.outputs[i];
    if (kept_outputs[i] || table.of(plan.values[v]) != buffer) continue;
    if (written_by_caller(v)) lost_outputs[i] = true;
    if (!lost_outputs[i]) kept_outputs[i] = read(v);
  }
}

void Executor::Impl::keep_outputs_in(const replay::StateValue& value) {
  for (std::size_t s = 0; s < state.size(); ++s)
    if (state[s].get() == &value || state[s]->overlaps(value)) keep_outputs_of(table.state(static_cast<std::int32_t>(s)));
}

Tensor Executor::Impl::output(std::size_t index) const {
  if (!has_outputs && !under_way())
    throw ExecutionError(
        dropped_by.empty()
            ? "no outputs: run() has not succeeded yet"
            : fmt::format("no outputs: the step of '{}' ended unfinished when '{}', which shares its memory, ran", name.view(),
                          dropped_by.view()));
  if (!has_outputs) check_computed(plan.graph.outputs[index]);
  const bool own = kept_outputs[index] || plan.values[plan.graph.outputs[index]].where != Where::output;
  if (!own && !family->finished && family->user != this)
    throw ExecutionError(
        fmt::format("no outputs: a step of '{}', which writes those of '{}' anew, began and has not come to its end",
                    family->name.view(), name.view()));
  if (lost_outputs[index] || (!kept_outputs[index] && written_by_caller(plan.graph.outputs[index])))
    gone_to_caller(plan.graph.outputs[index]);
  if (kept_outputs[index]) return from_bytes(kept_outputs[index]->type(), kept_outputs[index]->data());
  return read(plan.graph.outputs[index]);
}

std::vector<Tensor> Executor::Impl::outputs() const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < plan.graph.outputs.size(); ++i) all.push_back(output(i));
  return all;
}

// ---- the public face ----

Executor::Executor(Plan plan, const ExecutorOptions& options) : impl_(std::make_unique<Impl>(std::move(plan), options)) {
  if (!options.pool) impl_->memory->settle_arena();  // a pool's waits for the first run, when all have joined
}
Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

const Plan& Executor::plan() const { return impl_->plan; }
std::vector<std::string> Executor::state_names() const { return impl_->state_names; }
std::vector<std::string> Executor::input_names() const { return impl_->input_names; }
std::int64_t Executor::observed_peak_bytes() const { return impl_->memory->count.stats().peak_bytes; }

void Executor::set_input(const std::string& name, const Tensor& value) {
  const auto& outputs = impl_->output_names;
  const bool head = name.starts_with("grad.") && std::find(outputs.begin(), outputs.end(), name.substr(5)) != outputs.end();
  if (head && std::find(impl_->input_names.begin(), impl_->input_names.end(), name) == impl_->input_names.end())
    throw UsageError(fmt::format(
        "no input named '{}': the gradient that backward starts from is part of this graph; to give it, make the graph with "
        "gradient() and heads_as_inputs, or pass it into the step",
        name));
  set_input(impl_->find(impl_->input_names, "input", name), value);
}

void Executor::set_input(int index, const Tensor& value) {
  if (index < 0 || index >= static_cast<int>(impl_->input_names.size()))
    throw UsageError(fmt::format("no input {}: the graph has {}", index, impl_->input_names.size()));
  const Busy busy(*impl_->memory, "set_input", impl_->name);
  impl_->set_input(index, value);
}

void Executor::set_state(const std::string& name, const Tensor& value) {
  const std::int32_t slot = impl_->find(impl_->state_names, "state", name);
  const Busy busy(*impl_->memory, "set_state", impl_->name);
  impl_->set_state(slot, value);
}

void Executor::bind_state(const std::string& name, const Tensor& value) {
  const std::int32_t slot = impl_->find(impl_->state_names, "state", name);
  const Busy busy(*impl_->memory, "bind_state", impl_->name);
  impl_->bind_state(slot, value);
}

Tensor Executor::state(const std::string& name) const {
  const std::int32_t slot = impl_->find(impl_->state_names, "state", name);
  const Busy busy(*impl_->memory, "state", impl_->name);
  return impl_->read_state(slot);
}

void Executor::run() {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->run(nullptr);
}

std::vector<Tensor> Executor::run_and_outputs() {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->run(nullptr);
  return impl_->outputs();
}

void Executor::run(Timeline* timeline) { run(RunOptions{.timeline = timeline}); }

void Executor::run(const RunOptions& options) {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->run(&options);
}

void Executor::run(Phase phase, const RunOptions& options) {
  const Busy busy(*impl_->memory, "run", impl_->name);
  impl_->run_phase(phase, options);
}

std::int32_t Executor::step(std::int32_t n) {
  const Busy busy(*impl_->memory, "step", impl_->name);
  if (n < 0) throw UsageError(fmt::format("step: {} nodes", n));
  return impl_->run_in_order(n, kNone);
}

std::int32_t Executor::run_to(const std::string& value) {
  const Busy busy(*impl_->memory, "run_to", impl_->name);
  const NodeId node = impl_->plan.graph.values[impl_->find_value(value)].node;
  if (node == kNone) throw UsageError(fmt::format("run_to: no node makes '{}'", value));
  if (impl_->under_way() && impl_->has_run(node))
    throw UsageError(fmt::format("run_to: the node that makes '{}' has run already", value));
  return impl_->run_in_order(std::numeric_limits<std::int64_t>::max(), node);
}

void Executor::resume(const RunOptions& options) {
  const Busy busy(*impl_->memory, "resume", impl_->name);
  impl_->resume(options);
}

void Executor::restart() {
  const Busy busy(*impl_->memory, "restart", impl_->name);
  impl_->drop_step();
}

std::int32_t Executor::nodes_left() const {
  const Busy busy(*impl_->memory, "nodes_left", impl_->name);
  return impl_->under_way() ? impl_->parts->left : 0;
}

Tensor Executor::value(const std::string& name) const {
  const Busy busy(*impl_->memory, "value", impl_->name);
  return impl_->value(impl_->find_value(name));
}

std::int32_t Executor::monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options) {
  const Busy busy(*impl_->memory, "monitor", impl_->name);
  const std::int32_t id = impl_->monitors.add(pattern, std::move(fn), options);
  impl_->monitors_changed();
  return id;
}

void Executor::remove_monitor(std::int32_t id) {
  const Busy busy(*impl_->memory, "remove_monitor", impl_->name);
  impl_->monitors.remove(id);
  impl_->monitors_changed();
}

std::vector<Tensor> Executor::outputs() const {
  const Busy busy(*impl_->memory, "outputs", impl_->name);
  return impl_->outputs();
}

Tensor Executor::output(const std::string& name) const {
  const std::int32_t index = impl_->find(impl_->output_names, "output", name);
  const Busy busy(*impl_->memory, "output", impl_->name);
  return impl_->output(static_cast<std::size_t>(index));
}

}  // namespace tapedeck
