// Runs of which more is asked than to run: times, monitors, cancelling, progress. All of it between segments, but for segments
// that hold a watched node, which go node by node.
#include <tapedeck/capture/replay/executor_impl.h>

#include <tapedeck/capture/planner/planner.h>

#include <algorithm>

namespace tapedeck {

using replay::now_ns;

void Executor::Impl::begin_observing(const RunOptions& options) {
  timeline = options.timeline;
  if (timeline) {
    timeline->slices.assign(program.steps.size(), Slice{});
    start_ns = now_ns();
  }
  const bool part = under_way();
  gate.open(options.cancel, part && memory->step_wrote);
  const double all = plan.graph.node_count(), left = part ? parts->left : all;
  meter.begin(&options.progress, total_cost * (1 - left / std::max(all, 1.0)), total_cost);
}

// Throws if the run was stopped: Cancelled, or what the progress callback threw. A fault goes before.
void Executor::Impl::end_observing() {
  if (timeline) {
    timeline->run_ns = now_ns() - start_ns;
    std::erase_if(timeline->slices, [](const Slice& s) { return s.node == kNone; });
    timeline = nullptr;
  }
  if (!gate.stopped() || failed()) return;
  drop_step();
  meter.end(false);
  throw Cancelled("the run was cancelled; no state has been written");
}

void Executor::Impl::run_observed(std::int32_t segment) noexcept {
  const StepRange range = ranges[segment];
  const StepRange nodes =
      under_way() ? parts->nodes[segment] : StepRange{0, static_cast<std::int32_t>(plan.segments[segment].nodes.size())};
  if (nodes.first == nodes.end) return;
  if (!gate.enter(first_writer[segment] < range.end)) {
    runs[segment].stopped = range.first;
    return;
  }
  if (!watched.empty() && watched[segment])
    run_watched(segment);
  else if (timeline || poison)
    run_steps_timed(segment);
  else
    run_steps(segment);
  const auto share = static_cast<double>(nodes.end - nodes.first) / static_cast<double>(plan.segments[segment].nodes.size());
  if (meter.on() && !meter.add(cost_of(plan.segments[segment]) * share)) gate.stop();
}

void Executor::Impl::run_steps_timed(std::int32_t segment) noexcept {
  const StepRange range = ranges[segment];
  for (std::int32_t i = range.first; i < range.end; ++i)
    if (!run_step_timed(segment, i)) return;
}

bool Executor::Impl::run_step_timed(std::int32_t segment, std::int32_t i) noexcept {
  if (!timeline) return poison ? run_step_poisoned(segment, i) : run_step(segment, i);
  const std::int64_t began = now_ns() - start_ns;
  const bool go_on = poison ? run_step_poisoned(segment, i) : run_step(segment, i);
  timeline->slices[i] = {program.steps[i].node, segment, serial ? 0 : threads.index(), began, now_ns() - start_ns};
  return go_on;
}

// What the node does to bytes that are not its own is its fault.
bool Executor::Impl::run_step_poisoned(std::int32_t segment, std::int32_t i) noexcept {
  const replay::Step& step = program.steps[i];
  if (step.node > stop_at.load(std::memory_order_relaxed)) return run_step(segment, i);
  bool ran = false;
  try {
    poison->before(step.node, step.call);
    ran = true;
    if (!run_step(segment, i)) return false;
    poison->after(step.node, step.call);
    return true;
  } catch (...) {
    note_fault(segment, step.node, ran ? i + 1 : i, std::current_exception());
    return false;
  }
}

// Once nobody runs: damage that no node was caught at fails the run, and no node is blamed for it.
void Executor::Impl::check_dead_bytes() {
  if (stop_at.load(std::memory_order_relaxed) == replay::kNoStop) damage = poison->all_dead_untouched();
}

// Node by node: those without a call, windows and constants, can be watched too.
void Executor::Impl::run_watched(std::int32_t segment) noexcept {
  const StepRange steps = ranges[segment];
  const std::vector<NodeId>& all = plan.segments[segment].nodes;
  const StepRange nodes = under_way() ? parts->nodes[segment] : StepRange{0, static_cast<std::int32_t>(all.size())};
  const auto copy = [this](ValueId v) { return read(v); };
  std::int32_t i = steps.first;
  for (std::int32_t k = nodes.first; k < nodes.end; ++k) {
    const NodeId n = all[k];
    if (n > stop_at.load(std::memory_order_relaxed)) {
      runs[segment].stopped = i;
      return;
    }
    try {
      if (monitors.watches(n)) monitors.show_operands(n, copy);
      if (i < steps.end && program.steps[i].node == n && !run_step_timed(segment, i++)) return;
      if (monitors.watches(n)) monitors.show_results(n, copy);
    } catch (...) {
      return note_fault(segment, n, i, std::current_exception());
    }
  }
}

void Executor::Impl::monitors_changed() {
  watched.assign(monitors.any() ? plan.segments.size() : 0, false);
  for (std::size_t s = 0; s < watched.size(); ++s)
    for (const NodeId n : plan.segments[s].nodes) watched[s] = watched[s] || monitors.watches(n);
}

}  // namespace tapedeck
