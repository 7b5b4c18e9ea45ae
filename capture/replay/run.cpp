// The run: a walk over segments.
//
// Within a segment, kernels are called in order; between them, a segment starts when the last of those it waits for has
// finished. One thread is the same walk with one segment after the other, on the caller's thread: no arena is entered, and
// kernels are told not to spread. Nothing here allocates or locks until all is done.
//
// Faults. A node whose kernel reports one, or throws, lowers `stop_at`, and from then on no node above it starts. Nodes below
// it all run, so the lowest faulty node is the same one whatever the threads do. Each segment notes where it stopped; from that
// follows whether a state value had been written already.
//
// What is more than that - times, monitors, cancelling, progress - is observed_run.cpp, and costs a plain run one branch a
// segment.
//
// For the thread sanitizer, which does not see inside TBB, every hand-over is annotated: `start` opens a run, runs[s] hands
// segment s to a task, `finish` closes the run. What one segment hands to the next travels through the counters themselves.
#include <tapedeck/capture/replay/executor_impl.h>

#include <tapedeck/kernels/parallel.h>

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace tapedeck {

using replay::kNoStop;
using replay::listed;
using replay::SegmentRun;
using replay::Step;
using replay::StepRange;

namespace {
constexpr std::int32_t kStart = -1, kInOrder = -2;  // tasks that open a run; the others are segments
constexpr double kTooSmallToSpread = 40;  // microseconds: kernels cut their loops into pieces of some 20 (kernels/parallel.h)
}  // namespace

// ---- once ----

// Of a segment, in microseconds of the model; a node that costs nothing there still takes a moment.
double Executor::Impl::cost_of(const Segment& segment) {
  return segment.cost_us + 0.05 * static_cast<double>(segment.nodes.size());
}

void Executor::Impl::prepare_segments() {
  const std::size_t n = plan.segments.size();
  runs = std::make_unique<SegmentRun[]>(n);
  for (std::size_t s = 0; s < n; ++s) {
    const Segment& segment = plan.segments[s];
    runs[s].successors = segment.successors.data();
    runs[s].n_successors = static_cast<std::int32_t>(segment.successors.size());
    for (std::int32_t next : segment.successors) runs[next].waiting = ++runs[next].waits_for;
    total_cost += cost_of(segment);
  }
  auto writer = program.state_writers.begin();
  for (std::size_t s = 0; s < n; ++s) {
    if (runs[s].waits_for == 0) roots.push_back(static_cast<std::int32_t>(s));
    const StepRange range = program.segments[s];
    runs[s].stopped = range.end;
    for (std::int32_t i = range.first; i < range.end; ++i) program.steps[i].call.fault = &runs[s].fault;
    writer = std::lower_bound(writer, program.state_writers.end(), range.first);
    first_writer.push_back(writer == program.state_writers.end() ? range.end : std::min(*writer, range.end));
  }
  find_state_writers();
  ranges = program.segments.data();
  serial = threads.count() == 1 || nothing_to_share();
}

void Executor::Impl::find_state_writers() {
  const Graph& g = plan.graph;
  std::vector<StateWriter> step_of(g.nodes.size());
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::int32_t i = program.segments[s].first; i < program.segments[s].end; ++i)
      step_of[program.steps[i].node] = {static_cast<std::int32_t>(s), i};
  state_writers.resize(state.size());
  for (const Update& u : g.updates)
    if (u.value != u.state) state_writers[u.state - g.n_inputs] = step_of[g.values[u.value].node];
}

// Segments that follow one another, of nodes that do not spread: a second thread would only be woken for nothing.
bool Executor::Impl::nothing_to_share() const {
  if (roots.size() > 1) return false;
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    if (segment.successors.size() > 1) return false;
    for (const NodeId n : segment.nodes)
      if (plan.graph.nodes[n].op->is(kEffect) || plan.graph.nodes[n].n_regions > 0) return false;
    if (segment.cost_us < kTooSmallToSpread) continue;
    for (const NodeId n : segment.nodes)
      if (plan.intra_op.empty() || plan.intra_op[n]) return false;
  }
  return true;
}

// ---- before a step ----

void Executor::Impl::check_ready(bool inputs) const {
  const bool state_ready = seen_changes == memory->changes;
  const bool all_given = !inputs || std::find(input_set.begin(), input_set.end(), false) == input_set.end();
  if (state_ready && all_given) return;
  std::vector<std::string> missing, torn;
  Name torn_by;
  for (std::size_t s = 0; s < state.size(); ++s) {
    if (!state[s]->torn) continue;
    torn.push_back(state_names[s]);
    torn_by = state[s]->torn_by;
  }
  if (!torn.empty())
    throw ExecutionError(
        fmt::format("an earlier run of '{}' failed after it had begun to write state; set it again first (still missing: {})",
                    torn_by.view(), listed(torn)));
  for (std::size_t i = 0; inputs && i < input_names.size(); ++i)
    if (!input_set[i]) missing.push_back("input '" + input_names[i] + "'");
  for (std::size_t s = 0; s < state_names.size(); ++s)
    if (!state[s]->set) missing.push_back("state '" + state_names[s] + "'");
  if (!missing.empty()) throw ExecutionError("never set: " + listed(missing));
}

// The run is going to write state: what others returned from it is saved first.
void Executor::Impl::touch_state() {
  for (std::size_t s = 0; s < state.size(); ++s)
    if (state_written[s] && state[s]->bound.defined())
      state[s]->bound.data();  // not inside a capture, which would not see the write
  for (std::size_t s = 0; s < state.size(); ++s)
    if (state_written[s]) memory->before_write(*state[s]);
}

// The caller's tensors that this run, or part of one, has written: their versions say so, and not before, as a run may end
// without writing.
void Executor::Impl::note_written_state() {
  for (std::size_t s = 0; s < state.size(); ++s) {
    const auto& [segment, step] = state_writers[s];
    if (step != kNone && ranges[segment].first <= step && step < runs[segment].stopped && state[s]->bound.defined())
      state[s]->note_write();
  }
}

void Executor::Impl::start_step(bool inputs) {
  check_ready(inputs);
  if (memory->step_of) claim_memory();
  follow_memory();
  memory->arena_user = this;
  memory->arena_user_name = name;
  dropped_by = Name();
  if (poison) poison->begin(memory->settle_arena());
  has_outputs = false;
  *family = {this, name, false};
  touch_state();
  for (std::size_t s = 0; s < state.size(); ++s) state_stamps[s] = state[s]->written;
  if (parts)  // a step in parts may have been dropped by another executor
    for (std::size_t s = 0; s < first_writer.size(); ++s) runs[s].stopped = program.segments[s].end;
  if (moved) program.resolve(bases);
  moved = false;
  std::fill(kept_outputs.begin(), kept_outputs.end(), std::nullopt);
  std::fill(lost_outputs.begin(), lost_outputs.end(), false);
  std::fill(written_in_step.begin(), written_in_step.end(), false);
}

void Executor::Impl::run(const RunOptions* options) {
  if (under_way())
    throw ExecutionError(fmt::format("run: a step is under way ({}); resume() finishes it, restart() drops it", due()));
  start_step(true);
  walk(options);
  has_outputs = family->finished = true;
  note_versions();
  if (observed) meter.end(true);
}

// ---- the walk ----

// Runs `ranges`: on all threads, or, where `one_by_one` holds segments, these in their order. Throws what went wrong.
void Executor::Impl::walk(const RunOptions* options, StepRange one_by_one) {
  observed = monitors.any() || poison || (options && (options->timeline || options->cancel || options->progress));
  static const RunOptions none;  // the meter keeps a pointer to `progress`, so no copy may be handed on
  if (observed) begin_observing(options ? *options : none);
  in_order = one_by_one;
  const bool ordered = in_order.end > in_order.first;
  if (serial) {
    const kernels::OneThreadScope alone;
    if (!ordered) in_order = {0, static_cast<std::int32_t>(plan.segments.size())};
    for (std::int32_t s = in_order.first; s < in_order.end; ++s) run_segment(s);
  } else {
    kernels::annotate_release(&start);
    threads.run([](void* self, std::int32_t item) { static_cast<Impl*>(self)->hand_out(item); }, this,
                ordered ? kInOrder : kStart);
    kernels::annotate_acquire(&finish);
  }
  note_written_state();
  if (poison) check_dead_bytes();
  if (observed) end_observing();
  if (failed()) fail();
}

// A task of a run.
void Executor::Impl::hand_out(std::int32_t item) noexcept {
  kernels::annotate_acquire(&start);
  if (item == kStart) return run_roots();
  if (item != kInOrder) return run_from(item);
  for (std::int32_t s = in_order.first; s < in_order.end; ++s) run_segment(s);
  kernels::annotate_release(&finish);
}

void Executor::Impl::run_roots() noexcept {
  for (std::size_t i = 1; i < roots.size(); ++i) spawn(roots[i]);
  if (!roots.empty()) {
    kernels::annotate_release(&runs[roots[0]]);
    run_from(roots[0]);
  }
}

void Executor::Impl::spawn(std::int32_t segment) noexcept {
  kernels::annotate_release(&runs[segment]);
  threads.spawn(segment);
}

// Runs a segment that waits for nothing any more, then the first one it sets free, and so on; the others go to whoever is idle.
void Executor::Impl::run_from(std::int32_t segment) noexcept {
  kernels::annotate_acquire(&runs[segment]);
  for (;;) {
    run_segment(segment);
    const SegmentRun& done = runs[segment];
    std::int32_t next = kNone;
    for (std::int32_t i = 0; i < done.n_successors; ++i) {
      const std::int32_t s = done.successors[i];
      if (!runs[s].free()) continue;
      if (next == kNone)
        next = s;
      else
        spawn(s);
    }
    if (next == kNone) break;
    segment = next;
  }
  kernels::annotate_release(&finish);
}

void Executor::Impl::run_segment(std::int32_t segment) noexcept { observed ? run_observed(segment) : run_steps(segment); }

void Executor::Impl::run_steps(std::int32_t segment) noexcept {
  const StepRange range = ranges[segment];
  for (std::int32_t i = range.first; i < range.end; ++i)
    if (!run_step(segment, i)) return;
}

// False if the segment stops here.
bool Executor::Impl::run_step(std::int32_t segment, std::int32_t i) noexcept {
  const Step& step = program.steps[i];
  SegmentRun& run = runs[segment];
  if (step.node > stop_at.load(std::memory_order_relaxed)) {
    run.stopped = i;
    return false;
  }
  try {
    if (serial || step.intra_op) {
      step.kernel(step.call);
    } else {
      const kernels::OneThreadScope alone;
      step.kernel(step.call);
    }
  } catch (...) {
    note_fault(segment, step.node, i + 1, std::current_exception());
    return false;
  }
  if (!run.fault.what.load(std::memory_order_relaxed)) return true;
  note_fault(segment, step.node, i + 1, nullptr);
  return false;
}

// ---- what goes wrong ----

void Executor::Impl::note_fault(std::int32_t segment, NodeId node, std::int32_t stopped, std::exception_ptr thrown) noexcept {
  SegmentRun& run = runs[segment];
  run.stopped = stopped;
  run.faulty = node;
  run.thrown = std::move(thrown);
  std::int32_t lowest = stop_at.load(std::memory_order_relaxed);
  while (node < lowest && !stop_at.compare_exchange_weak(lowest, node, std::memory_order_relaxed)) {
  }
}

bool Executor::Impl::wrote_state() const {
  for (std::size_t s = 0; s < first_writer.size(); ++s)
    if (first_writer[s] < runs[s].stopped && first_writer[s] < program.segments[s].end) return true;
  return false;
}

// What the graph updates is half old and half new.
void Executor::Impl::tear_state() {
  for (std::size_t s = 0; s < state.size(); ++s)
    if (state_written[s]) memory->tear(*state[s], name);
}

// After a step that came to no good end: the next one begins anew, unless state was written.
void Executor::Impl::drop_step() {
  if (under_way()) {
    memory->step_of = nullptr;
    if (memory->step_wrote) tear_state();
  }
  for (std::size_t s = 0; s < first_writer.size(); ++s) {
    SegmentRun& run = runs[s];
    run.stopped = program.segments[s].end;
    run.faulty = kNone;
    run.thrown = nullptr;
    run.fault.what = nullptr;
    run.fault.value = 0;
  }
}

// Throws the error of the lowest faulty node, or what no node is to blame for, and leaves everything ready for another run,
// unless state was written.
void Executor::Impl::fail() {
  const NodeId node = stop_at.exchange(kNoStop, std::memory_order_relaxed);
  std::exception_ptr thrown;
  std::string what;
  for (std::size_t s = 0; s < first_writer.size(); ++s) {
    if (runs[s].faulty != node) continue;
    thrown = runs[s].thrown;
    if (!thrown) what = fmt::format("{}: {}", runs[s].fault.what.load(), runs[s].fault.value.load());
  }
  memory->step_of = this;
  const bool torn = memory->step_wrote = wrote_state();
  drop_step();
  const std::string end = torn ? "; state had been written already, so it must be set again before the next run" : "";
  if (!damage.empty()) throw ExecutionError(std::exchange(damage, "") + end);
  if (!thrown) throw ExecutionError(fault_text(node, what) + end);
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    std::throw_with_nested(ExecutionError(fault_text(node, "out of memory") + end));
  } catch (const std::exception& e) {
    std::throw_with_nested(ExecutionError(fault_text(node, e.what()) + end));
  } catch (...) {
    std::throw_with_nested(ExecutionError(fault_text(node, "something was thrown that is no std::exception") + end));
  }
}

std::string Executor::Impl::fault_text(NodeId n, const std::string& what) const {
  const Node& node = plan.graph.nodes[n];
  const std::string site = node.origin.site.empty() ? "" : fmt::format(" ({})", node.origin.site.view());
  return fmt::format("[{}] {}, at {}{}", node.op->name, what, plan.graph.node_text(n), site);
}

}  // namespace tapedeck
