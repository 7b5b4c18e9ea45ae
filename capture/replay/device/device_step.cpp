// A step on a device: what is sent, which parts run and how, and what is known of them afterwards.
//
//     step 1      call a | wait | call b | wait | ...         every kernel has run once
//     step 2      capture, then as step 3
//     step 3      send inputs | launch | wait | read faults
//
//     launch()    send inputs | launch
//     launch()    send inputs | launch
//     wait()      wait | read faults
#include <tapedeck/capture/replay/device/device_step.h>

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/capture/replay/memory/view_copies.h>
#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/movement.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

namespace tapedeck::replay {

namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr std::int64_t kStagingAlignment = 64;

// The offset of each input in the staging memory; the last entry is the size of it.
std::vector<std::int64_t> staging_offsets(const Plan& plan, const BufferTable& table) {
  std::vector<std::int64_t> offsets = {0};
  for (std::int32_t slot = 0; slot < plan.graph.n_inputs; ++slot) {
    const std::int64_t bytes = table.bytes[table.input(slot)];
    offsets.push_back(offsets.back() + (bytes + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment);
  }
  return offsets;
}

}  // namespace

// ---- once ----

DeviceStep::DeviceStep(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, const Plan& plan, const Member& member,
                       const Buffers& buffers, Program& program, CudaGraphs graphs, int threads, bool state_later)
    : runtime_(std::move(runtime)),
      plan_(plan),
      member_(member),
      buffers_(buffers),
      program_(program),
      graph_use_(graphs),
      parts_(device_parts(program)),
      memory_(runtime_, DeviceLayout(buffers.table(), program.scratch_bytes), state_later),
      queue_(runtime_),
      input_staging_(queue_, staging_offsets(plan, buffers.table()).back()),
      faults_(runtime_, program),
      host_(program, queue_, threads == 1),
      graphs_(program, parts_, queue_, faults_),
      staging_offset_(staging_offsets(plan, buffers.table())),
      on_device_alone_(std::none_of(parts_.begin(), parts_.end(), [](const DevicePart& part) { return part.on_host; })),
      new_inputs_(static_cast<std::size_t>(plan.graph.n_inputs)),
      new_state_(static_cast<std::size_t>(plan.graph.n_state)),
      versions_(static_cast<std::size_t>(plan.graph.n_state)),
      stale_(static_cast<std::size_t>(buffers.table().count())) {
  if (graph_use_ == CudaGraphs::required) require_one_graph();
  needs_waits_ = settings().sync || graph_use_ == CudaGraphs::off;
  if (settings().sync) queue_.counters.without_graphs = "TAPEDECK_SYNC is set";
  if (graph_use_ == CudaGraphs::off) queue_.counters.without_graphs = "CUDA graphs are off";
  queue_.counters.allocated_bytes = memory_.allocated_bytes();
  program.resolve(memory_.bases());
  for (Instruction& instruction : program.instructions) instruction.call.stream = queue_.stream();
  send_constants();
}

// The stream is waited for first, because the work on it may use all that is destroyed now.
DeviceStep::~DeviceStep() { runtime_->synchronize(queue_.stream()); }

void DeviceStep::require_one_graph() const {
  std::string nodes;
  for (const DevicePart& part : parts_) {
    if (!part.on_host) continue;
    const Instruction& i = program_.instructions[part.instructions.first];
    nodes += fmt::format("{}`{}` ({})", nodes.empty() ? "" : ", ", plan_.graph.node_text(i.node), i.why_on_host);
  }
  if (!nodes.empty())
    throw UsageError(
        fmt::format("a step of '{}' is not one CUDA graph, because nodes run on the host: {}", member_.name.view(), nodes));
}

void DeviceStep::send_constants() {
  const BufferTable& table = buffers_.table();
  for (std::size_t c = 0; c < plan_.graph.constants.size(); ++c) {
    const BufferId b = table.constant(static_cast<std::int32_t>(c));
    queue_.upload(memory_.bases()[b], plan_.graph.constants[c].data.get(), table.bytes[b]);
  }
}

DeviceCounters DeviceStep::counters() const { return queue_.counters; }

// ---- where state lies ----

// Gives the calls the addresses of state that is bound to tensors of the device. Graphs hold addresses, so they are captured
// again if one has changed.
void DeviceStep::place_state() {
  if (!state_moved_) return;
  std::vector<void*> elsewhere;
  for (const auto& value : member_.state) elsewhere.push_back(value->device() ? value->base : nullptr);
  const bool changed = memory_.place_state(buffers_.table(), elsewhere);
  state_moved_ = false;  // not before: without enough memory the next step tries again
  queue_.counters.allocated_bytes = memory_.allocated_bytes();
  if (!changed) return;
  program_.resolve(memory_.bases());
  if (graphs_.ready()) graphs_.drop();
}

// ---- what is sent before a step ----

void DeviceStep::state_changed(std::int32_t slot) {
  any_new_state_ = new_state_[slot] = state_moved_ = true;
  any_bound_state_ = any_bound_state_ || member_.state[slot]->bound.defined();  // it stays bound
  stale_[buffers_.table().state(slot)] = false;
}

void DeviceStep::send_inputs() {
  if (!any_new_input_) return;
  const BufferTable& table = buffers_.table();
  char* const half = input_staging_.next_half();
  for (std::int32_t slot = 0; slot < plan_.graph.n_inputs; ++slot) {
    const BufferId b = table.input(slot);
    if (!new_inputs_[slot]) continue;
    new_inputs_[slot] = false;
    if (table.bytes[b] <= 0) continue;
    char* staged = half + staging_offset_[slot];
    std::memcpy(staged, buffers_.address(b), static_cast<std::size_t>(table.bytes[b]));
    queue_.upload(memory_.bases()[b], staged, table.bytes[b]);
  }
  input_staging_.copies_given();
  any_new_input_ = false;
}

// The copies read the bytes of the host themselves: these change after the next wait only.
void DeviceStep::send_state() {
  if (!any_new_state_ && !any_bound_state_) return;
  const BufferTable& table = buffers_.table();
  for (std::size_t slot = 0; slot < member_.state.size(); ++slot) {
    const StateValue& value = *member_.state[slot];
    const bool written = value.bound.defined() && value.version() != versions_[slot];
    if (value.device()) new_state_[slot] = false;
    if ((!new_state_[slot] && !written) || value.device()) continue;
    const BufferId b = table.state(static_cast<std::int32_t>(slot));
    queue_.upload(memory_.bases()[b], value.base, table.bytes[b]);
    new_state_[slot] = false;
    stale_[b] = false;
    if (value.bound.defined()) versions_[slot] = value.version();
  }
  any_new_state_ = false;
}

void DeviceStep::note_versions() {
  if (!any_bound_state_) return;
  for (std::size_t slot = 0; slot < member_.state.size(); ++slot)
    if (member_.state[slot]->bound.defined()) versions_[slot] = member_.state[slot]->version();
}

// ---- a step ----

DeviceOutcome DeviceStep::run(Timeline* timeline) { return step(false, timeline); }

DeviceOutcome DeviceStep::launch() { return step(goes_ahead(), nullptr); }

bool DeviceStep::goes_ahead() const { return warm_ && !needs_waits_ && on_device_alone_ && !any_bound_state_; }

DeviceOutcome DeviceStep::step(bool ahead, Timeline* timeline) {
  refuse_if_lost();
  DeviceOutcome outcome;
  const bool others_in_flight = in_flight_ > 0;
  begun_ = known_ = 0;
  try {
    place_state();
    if (ops_) ops_->order_after_ops(queue_.stream());
    send_inputs();
    send_state();
    const bool graphed = !timeline && captures();
    ++in_flight_;
    if (run_parts(!graphed && (needs_waits_ || !warm_ || timeline), graphed ? nullptr : timeline, &outcome) && !ahead)
      settle(&outcome);
    if (timeline) timeline->run_ns = now_ns() - began_ns_;
    queue_.counters.steps_ahead += ahead;
  } catch (const DeviceFailure& failure) {
    note_failure(failure, &outcome);
  }
  note_results(others_in_flight, &outcome);
  try {
    if (outcome.wrote_state && lost_.empty()) fetch_bound_state();
  } catch (const DeviceFailure& failure) {
    note_failure(failure, &outcome);
  }
  if (outcome.failed() && in_flight_ > 0) outcome.steps = std::exchange(in_flight_, 0);
  return outcome;
}

DeviceOutcome DeviceStep::wait() {
  DeviceOutcome outcome;
  try {
    settle(&outcome);
  } catch (const DeviceFailure& failure) {
    note_failure(failure, &outcome);
  }
  outcome.wrote_state = !program_.state_writers.empty();
  return outcome;
}

// The end of the steps in flight.
void DeviceStep::settle(DeviceOutcome* outcome) {
  outcome->steps = std::exchange(in_flight_, 0);
  if (!synchronize(outcome)) return;
  warm_ = true;
  queue_.counters.steps += outcome->steps;
}

// Whether this step runs by graphs. A capture that fails is not tried again.
bool DeviceStep::captures() {
  if (graphs_.ready()) return true;
  if (!warm_ || !queue_.counters.without_graphs.empty()) return false;
  const std::string failure = graphs_.capture();
  if (failure.empty()) return true;
  if (graph_use_ == CudaGraphs::required)
    throw ExecutionError(fmt::format("the step of '{}' cannot be captured as a CUDA graph: {}", member_.name.view(), failure));
  queue_.counters.without_graphs = failure;
  std::fprintf(stderr, "warning: '%s' runs without CUDA graphs: %s\n", member_.name.str().c_str(), failure.c_str());
  return false;
}

// run_parts(), run_part(), call(), run_on_host() and synchronize() return false if the step stops here.

bool DeviceStep::run_parts(bool one_by_one, Timeline* timeline, DeviceOutcome* outcome) {
  began_ns_ = now_ns();
  if (timeline) timeline->slices.clear();
  for (std::size_t p = 0; p < parts_.size(); ++p)
    if (!run_part(p, one_by_one, timeline, outcome)) return false;
  return true;
}

bool DeviceStep::run_part(std::size_t p, bool one_by_one, Timeline* timeline, DeviceOutcome* outcome) {
  const DevicePart& part = parts_[p];
  if (graphs_.ready() && !one_by_one && !part.on_host) {
    begun_ = part.instructions.end;
    graphs_.launch(p);
    return true;
  }
  for (std::int32_t i = part.instructions.first; i < part.instructions.end; ++i) {
    const std::int64_t start_ns = now_ns() - began_ns_;
    if (!(part.on_host ? run_on_host(i, outcome) : call(i, one_by_one, outcome))) return false;
    if (timeline) note_slice(i, start_ns, timeline);
  }
  return true;
}

// A node whose operands are converted has several instructions and one slice.
void DeviceStep::note_slice(std::int32_t i, std::int64_t start_ns, Timeline* timeline) const {
  const NodeId node = program_.instructions[i].node;
  const std::int64_t end_ns = now_ns() - began_ns_;
  if (!timeline->slices.empty() && timeline->slices.back().node == node)
    timeline->slices.back().end_ns = end_ns;
  else
    timeline->slices.push_back({node, segment_of(i), 0, start_ns, end_ns});
}

bool DeviceStep::call(std::int32_t i, bool waits, DeviceOutcome* outcome) {
  const Instruction& instruction = program_.instructions[i];
  begun_ = i + 1;
  runtime_->run(instruction.kernel, instruction.call);
  ++queue_.counters.kernel_calls;
  return !waits || synchronize(outcome);
}

// The host waits for the operands, so faults before this node are known, and stop the step as on the CPU.
bool DeviceStep::run_on_host(std::int32_t i, DeviceOutcome* outcome) {
  host_.fetch(i);
  if (!synchronize(outcome)) return false;
  begun_ = i + 1;
  ++queue_.counters.host_nodes;
  try {
    host_.run(i);
  } catch (const DeviceFailure&) {
    throw;
  } catch (...) {
    outcome->fault = {program_.instructions[i].node, std::current_exception(), {}};
    return false;
  }
  if (!program_.instructions[i].call.fault->what.load(std::memory_order_relaxed)) return true;
  return synchronize(outcome);
}

bool DeviceStep::synchronize(DeviceOutcome* outcome) {
  queue_.synchronize();
  input_staging_.all_read();
  known_ = begun_;
  const std::int32_t faulty = faults_.lowest();
  if (faulty == kNone) return true;
  outcome->fault = {program_.instructions[faulty].node, nullptr, faults_.text_of(faulty)};
  faults_.clear();
  return false;
}

std::int32_t DeviceStep::segment_of(std::int32_t i) const {
  const auto ends_behind = [](std::int32_t at, const IndexRange& range) { return at < range.end; };
  const auto segment = std::upper_bound(program_.segments.begin(), program_.segments.end(), i, ends_behind);
  return static_cast<std::int32_t>(segment - program_.segments.begin());
}

// ---- after a step ----

// After an error of the device nothing there can be relied on.
void DeviceStep::note_failure(const DeviceFailure& failure, DeviceOutcome* outcome) {
  lost_ = failure.text;
  const std::int32_t running = begun_ - known_;
  if (running == 1)
    outcome->fault = {program_.instructions[known_].node, nullptr, failure.what()};
  else
    outcome->error = fmt::format("{}{}", failure.what(), running > 0 ? running_text() : std::string());
}

std::string DeviceStep::running_text() const {
  const auto text = [&](std::int32_t i) { return plan_.graph.node_text(program_.instructions[i].node); };
  return fmt::format(", in one of {} kernels that ran, from `{}` to `{}`; TAPEDECK_SYNC=1 finds the node", begun_ - known_,
                     text(known_), text(begun_ - 1));
}

void DeviceStep::note_results(bool others_in_flight, DeviceOutcome* outcome) {
  const BufferTable& table = buffers_.table();
  outcome->wrote_state = !program_.state_writers.empty() && (others_in_flight || program_.state_writers.front() < begun_);
  for (std::size_t s = 0; s < plan_.output_slots.size(); ++s) stale_[table.output(static_cast<std::int32_t>(s))] = true;
  if (!outcome->wrote_state) return;
  for (const Update& u : plan_.graph.updates)
    if (u.value != u.state) stale_[table.state(u.state - plan_.graph.n_inputs)] = true;
}

// All copies are given to the stream before the one wait.
void DeviceStep::fetch_bound_state() {
  if (!any_bound_state_) return;
  std::vector<BufferId> fetched;
  for (std::size_t slot = 0; slot < member_.state.size(); ++slot) {
    const BufferId b = buffers_.table().state(static_cast<std::int32_t>(slot));
    if (!member_.state[slot]->bound.defined() || member_.state[slot]->device() || !stale_[b]) continue;
    queue_.download(buffers_.address(b), memory_.bases()[b], buffers_.table().bytes[b]);
    fetched.push_back(b);
  }
  if (fetched.empty()) return;
  queue_.synchronize();
  for (BufferId b : fetched) stale_[b] = false;
}

// ---- reading ----

void DeviceStep::refuse_if_lost() const {
  if (!lost_.empty())
    throw ExecutionError(fmt::format("the device cannot be used any more in this process; an earlier step of '{}' got: {}",
                                     member_.name.view(), lost_));
}

void DeviceStep::fetch(BufferId b) {
  if (!stale_[b]) return;
  refuse_if_lost();
  queue_.download(buffers_.address(b), memory_.bases()[b], buffers_.table().bytes[b]);
  queue_.synchronize();
  stale_[b] = false;
}

Tensor DeviceStep::read(const BufferView& from, const Type& type) {
  refuse_if_lost();
  place_state();
  const Reach reach = reach_of(from.view);
  std::vector<char> bytes(static_cast<std::size_t>(reach.bytes));
  queue_.download(bytes.data(), static_cast<char*>(memory_.bases()[from.buffer]) + from.offset - reach.before, reach.bytes);
  queue_.synchronize();
  View view = from.view;
  view.data = bytes.data() + reach.before;
  return copy_of_view(view, type);
}

// ---- tensors of the device ----

// An op makes the tensor dense if it has gaps.
void DeviceStep::set_input(std::int32_t slot, const Tensor& value) {
  refuse_if_lost();
  const NoGrad no_grad;
  const Tensor dense = value.dense() ? value : copy(value);
  const BufferId b = buffers_.table().input(slot);
  ops_->order_after_ops(queue_.stream());
  queue_.copy(memory_.bases()[b], dense.impl()->resident_data(), buffers_.table().bytes[b]);
  ops_->order_ops_after(queue_.stream());
  new_inputs_[slot] = false;
  stale_[b] = true;
}

// The memory of a new tensor may have been that of another, which ops still use. A value with gaps goes by way of the host.
std::vector<Tensor> DeviceStep::copies_there(const std::vector<Copied>& values) {
  refuse_if_lost();
  place_state();
  std::vector<Tensor> copies;
  for (const Copied& value : values)
    copies.push_back(Tensor(detail::new_impl(value.type, detail::new_storage(value.type.bytes(), ops_))));
  ops_->order_after_ops(queue_.stream());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [from, type] = values[i];
    if (type.bytes() > 0 && from.view.dense())
      queue_.copy(copies[i].impl()->resident_data(), static_cast<char*>(memory_.bases()[from.buffer]) + from.offset,
                  type.bytes());
    else if (type.bytes() > 0)
      copies[i] = to_device(read(from, type), ops_->name());
  }
  ops_->order_ops_after(queue_.stream());
  return copies;
}

}  // namespace tapedeck::replay
