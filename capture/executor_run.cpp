// The run: a walk over segments.
//
// Within a segment, kernels are called in order; between them, a segment starts when the last of those it waits for has finished.
// One thread is the same walk with one segment after the other. Nothing here allocates, locks or throws until all is done.
//
// Faults. A node whose kernel reports one lowers `stop_at`, and from then on no node above it starts. Nodes below it all run, so the
// lowest faulty node is the same one whatever the threads do. Each segment notes where it stopped; from that follows whether a state
// value had been written already.
//
// For the thread sanitizer, which does not see inside TBB, every hand-over is annotated: `start` opens a run, waiting[s] hands
// segment s to a task, `finish` closes the run. What one segment hands to the next travels through the counters themselves.
#include <tapedeck/capture/executor_impl.h>

#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <utility>

namespace tapedeck {

using replay::kNoStop;
using replay::listed;
using replay::Step;
using replay::StepRange;

namespace {
constexpr std::int32_t kStart = -1;  // the task that opens a run; the others are segments

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}

void Executor::Impl::prepare_segments() {
  const std::size_t n = plan.segments.size();
  waits_for.resize(n);
  stopped.resize(n);
  waiting = std::make_unique<std::atomic<std::int32_t>[]>(n);
  faults = std::make_unique<KernelFault[]>(n);
  for (const Segment& s : plan.segments)
    for (std::int32_t next : s.successors) ++waits_for[next];
  for (std::size_t s = 0; s < n; ++s) {
    if (waits_for[s] == 0) roots.push_back(static_cast<std::int32_t>(s));
    const StepRange range = program.segments[s];
    stopped[s] = range.end;
    for (std::int32_t i = range.first; i < range.end; ++i) program.steps[i].call.fault = &faults[s];
  }
}

void Executor::Impl::check_ready() const {
  std::vector<std::string> missing, torn;
  Name torn_by;
  for (std::size_t s = 0; s < state.size(); ++s) {
    if (!state[s]->torn) continue;
    torn.push_back(state_names[s]);
    torn_by = state[s]->torn_by;
  }
  if (!torn.empty())
    throw ExecutionError(fmt::format("an earlier run of '{}' failed after it had begun to write state; set it again first (still missing: {})",
                                     torn_by.view(), listed(torn)));
  for (std::size_t i = 0; i < input_names.size(); ++i)
    if (!input_set[i]) missing.push_back("input '" + input_names[i] + "'");
  for (std::size_t s = 0; s < state_names.size(); ++s)
    if (!state[s]->set) missing.push_back("state '" + state_names[s] + "'");
  if (!missing.empty()) throw ExecutionError("never set: " + listed(missing));
}

// The run is going to write state: what others returned from it is saved first, and versions of the caller's tensors bump.
void Executor::Impl::touch_state() {
  for (std::size_t s = 0; s < state.size(); ++s) {
    if (!state_written[s]) continue;
    memory->before_write(*state[s]);
    if (!state[s]->bound.defined()) continue;
    void* const base = state[s]->bound.mutable_data();
    if (base != std::exchange(state[s]->base, base)) seen_changes = ++memory->changes;
    set_base(table.state(static_cast<std::int32_t>(s)), base);
  }
}

void Executor::Impl::run(Timeline* wanted) {
  follow_memory();
  has_outputs = false;
  touch_state();
  timeline = wanted;
  if (timeline) timeline->slices.assign(program.steps.size(), Slice{});
  if (moved) program.resolve(bases);
  moved = false;
  std::fill(kept_outputs.begin(), kept_outputs.end(), std::nullopt);
  if (threads.count() > 1)
    for (std::size_t s = 0; s < waits_for.size(); ++s) waiting[s].store(waits_for[s], std::memory_order_relaxed);
  kernels::annotate_release(&start);
  if (timeline) start_ns = now_ns();
  threads.run(
      [](void* self, std::int32_t item) {
        Impl& impl = *static_cast<Impl*>(self);
        kernels::annotate_acquire(&impl.start);
        item == kStart ? impl.run_roots() : impl.run_from(item);
      },
      this, kStart);
  kernels::annotate_acquire(&finish);
  if (timeline) timeline->run_ns = now_ns() - start_ns;
  if (stop_at.load(std::memory_order_relaxed) != kNoStop) fail();
  has_outputs = true;
}

// The first task of a run.
void Executor::Impl::run_roots() noexcept {
  if (threads.count() == 1) {
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(stopped.size()); ++s) run_steps(s);
    kernels::annotate_release(&finish);
    return;
  }
  for (std::size_t i = 1; i < roots.size(); ++i) spawn(roots[i]);
  if (!roots.empty()) {
    kernels::annotate_release(&waiting[roots[0]]);
    run_from(roots[0]);
  }
}

void Executor::Impl::spawn(std::int32_t segment) noexcept {
  kernels::annotate_release(&waiting[segment]);
  threads.spawn(segment);
}

// Runs a segment that waits for nothing any more, then the first one it sets free, and so on; the others go to whoever is idle.
void Executor::Impl::run_from(std::int32_t segment) noexcept {
  kernels::annotate_acquire(&waiting[segment]);
  for (;;) {
    run_steps(segment);
    std::int32_t next = kNone;
    for (std::int32_t s : plan.segments[segment].successors) {
      if (waiting[s].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
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

void Executor::Impl::run_steps(std::int32_t segment) noexcept {
  if (timeline) return run_steps_timed(segment);
  const StepRange range = program.segments[segment];
  for (std::int32_t i = range.first; i < range.end; ++i)
    if (!run_step(segment, i)) return;
}

void Executor::Impl::run_steps_timed(std::int32_t segment) noexcept {
  const StepRange range = program.segments[segment];
  for (std::int32_t i = range.first; i < range.end; ++i) {
    Slice& slice = timeline->slices[i];
    slice = {program.steps[i].node, segment, threads.index(), now_ns() - start_ns, 0};
    const bool go_on = run_step(segment, i);
    slice.end_ns = now_ns() - start_ns;
    if (!go_on) return;
  }
}

// False if the segment stops here.
bool Executor::Impl::run_step(std::int32_t segment, std::int32_t i) noexcept {
  const Step& step = program.steps[i];
  if (step.node > stop_at.load(std::memory_order_relaxed)) {
    stopped[segment] = i;
    return false;
  }
  if (step.intra_op) {
    step.kernel(step.call);
  } else {
    const kernels::OneThreadScope alone;
    step.kernel(step.call);
  }
  if (!faults[segment].what.load(std::memory_order_relaxed)) return true;
  note_fault(segment, i);
  return false;
}

void Executor::Impl::note_fault(std::int32_t segment, std::int32_t step) noexcept {
  stopped[segment] = step + 1;
  const NodeId node = program.steps[step].node;
  std::int32_t lowest = stop_at.load(std::memory_order_relaxed);
  while (node < lowest && !stop_at.compare_exchange_weak(lowest, node, std::memory_order_relaxed)) {
  }
}

// Throws the error of the lowest faulty node, and leaves everything ready for another run, unless state was written.
void Executor::Impl::fail() {
  const NodeId node = stop_at.exchange(kNoStop, std::memory_order_relaxed);
  std::string text;
  bool torn = false;
  for (std::size_t s = 0; s < stopped.size(); ++s) {
    const StepRange range = program.segments[s];
    if (stopped[s] > range.first && program.steps[stopped[s] - 1].node == node && faults[s].what.load()) text = fault_text(node, faults[s]);
    for (std::int32_t i : program.state_writers) torn |= i >= range.first && i < stopped[s];
    stopped[s] = range.end;
    faults[s].what = nullptr;
    faults[s].value = 0;
  }
  if (torn) {
    for (std::size_t s = 0; s < state.size(); ++s)
      if (state_written[s]) state[s]->tear(name);
    ++memory->changes;
    text += "; state had been written already, so it must be set again before the next run";
  }
  throw ExecutionError(text);
}

std::string Executor::Impl::fault_text(NodeId n, const KernelFault& fault) const {
  const Node& node = plan.graph.nodes[n];
  const std::string site = node.origin.site.empty() ? "" : fmt::format(" ({})", node.origin.site.view());
  return fmt::format("[{}] {}: {}, at {}{}", node.op->name, fault.what.load(), fault.value.load(), plan.graph.node_text(n), site);
}

}  // namespace tapedeck
