// Observed runs. run_segment() stands in for the plain loop over the instructions of a segment:
//
//     may the segment start?      gate: cancelled, and no state written yet -> it does not
//     a watched node in it        node by node; monitors see operands before, results after
//     timeline, poison, NaN check, pause, kept effects     instruction by instruction
//     neither                     the plain loop
//     how far is the step?        meter
#include <tapedeck/capture/replay/observed_run.h>

#include <tapedeck/capture/replay/finite.h>

#include <algorithm>
#include <utility>

namespace tapedeck::replay {

namespace {

std::unique_ptr<Poison> make_poison(const Plan& plan, const Program& program, int level) {
  if (level == 0) return nullptr;
  std::vector<bool> called(plan.graph.nodes.size());
  for (const Instruction& instruction : program.instructions) called[instruction.node] = true;
  return std::make_unique<Poison>(plan, called, level);
}

}  // namespace

ObservedRun::ObservedRun(const Plan& plan, const Program& program, SegmentWalk& walk, const Buffers& buffers, KeptStep& kept,
                         int poison_level, bool check_nan)
    : plan_(plan),
      program_(program),
      walk_(walk),
      buffers_(buffers),
      kept_(kept),
      monitors_(plan.graph),
      poison_(make_poison(plan, program, poison_level)),
      check_nan_(check_nan) {}

// ---- monitors ----

std::int32_t ObservedRun::add_monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options) {
  const std::int32_t id = monitors_.add(pattern, std::move(fn), options);
  find_watched_segments();
  return id;
}

void ObservedRun::remove_monitor(std::int32_t id) {
  monitors_.remove(id);
  find_watched_segments();
}

void ObservedRun::find_watched_segments() {
  watched_.assign(monitors_.any() ? plan_.segments.size() : 0, false);
  for (std::size_t s = 0; s < watched_.size(); ++s)
    for (const NodeId n : plan_.segments[s].nodes) watched_[s] = watched_[s] || monitors_.watches(n);
}

// ---- a run ----

void ObservedRun::begin_step(const std::vector<void*>& blocks) {
  if (poison_) poison_->begin(blocks);
}

bool ObservedRun::is_asked(const RunOptions* options, const RunExtent& extent) const {
  return monitors_.any() || poison_ || check_nan_ || extent.pause || kept_.watches_effects() ||
         (options && (options->timeline || options->cancel || options->progress));
}

void ObservedRun::begin(const RunOptions& options, const RunExtent& extent) {
  nodes_ = extent.nodes;
  pause_ = extent.pause;
  timeline_ = options.timeline;
  if (timeline_) {
    timeline_->slices.assign(program_.instructions.size(), Slice{});
    start_ns_ = now_ns();
  }
  gate_.open(options.cancel, extent.wrote_state);
  const double all = plan_.graph.node_count(), left = all - extent.nodes_done;
  meter_.begin(&options.progress, walk_.total_cost() * (1 - left / std::max(all, 1.0)), walk_.total_cost());
}

void ObservedRun::end() {
  if (poison_ && !walk_.failed()) damage_ = poison_->all_dead_untouched();
  if (!timeline_) return;
  timeline_->run_ns = now_ns() - start_ns_;
  std::erase_if(timeline_->slices, [](const Slice& s) { return s.node == kNone; });
  timeline_ = nullptr;
}

std::string ObservedRun::take_damage() { return std::exchange(damage_, ""); }

// ---- a segment ----

IndexRange ObservedRun::nodes_of(std::int32_t segment) const {
  return nodes_ ? nodes_[segment] : IndexRange{0, static_cast<std::int32_t>(plan_.segments[segment].nodes.size())};
}

void ObservedRun::run_segment(std::int32_t segment) noexcept {
  const IndexRange nodes = nodes_of(segment);
  if (nodes.first == nodes.end) return;
  if (pause_ && pause_->behind != kNone) return walk_.stop(segment, walk_.range(segment).first);
  if (!gate_.enter(false)) return walk_.stop(segment, walk_.range(segment).first);
  const HeedHere loops_too(gate_);
  if (!watched_.empty() && watched_[segment])
    run_watched(segment);
  else if (timeline_ || poison_ || check_nan_ || pause_ || kept_.watches_effects() || walk_.writes_state(segment))
    run_one_by_one(segment);
  else
    walk_.run_instructions(segment);
  const Segment& all = plan_.segments[segment];
  const auto share = static_cast<double>(nodes.end - nodes.first) / static_cast<double>(all.nodes.size());
  if (meter_.on() && !meter_.add(SegmentWalk::cost_of(all) * share)) gate_.stop();
}

void ObservedRun::run_one_by_one(std::int32_t segment) noexcept {
  const IndexRange range = walk_.range(segment);
  for (std::int32_t i = range.first; i < range.end; ++i)
    if (!run_timed(segment, i) || pauses_behind(segment, i)) return;
}

bool ObservedRun::pauses_behind(std::int32_t segment, std::int32_t i) noexcept {
  const Instruction& instruction = program_.instructions[i];
  if (!pause_ || !pause_->heed(instruction.node, instruction.call)) return false;
  walk_.stop(segment, i + 1);
  return true;
}

// The run can be stopped until the first instruction that writes state starts, also inside of the segment that writes it.
bool ObservedRun::run_timed(std::int32_t segment, std::int32_t i) noexcept {
  if (i == walk_.first_writer(segment) && !gate_.enter(true)) {
    walk_.stop(segment, i);
    return false;
  }
  const auto run = [&] { return check_nan_ ? run_checked(segment, i) : run_poisoned(segment, i); };
  if (!timeline_) return run();
  const std::int64_t began = now_ns() - start_ns_;
  const bool go_on = run();
  timeline_->slices[i] = {program_.instructions[i].node, segment, walk_.thread(), began, now_ns() - start_ns_};
  return go_on;
}

// A node that makes NaN or infinity is at fault. Results on another device are not looked at.
bool ObservedRun::run_checked(std::int32_t segment, std::int32_t i) noexcept {
  const Instruction& instruction = program_.instructions[i];
  const bool runs = !walk_.is_stopped_before(instruction.node);
  if (!run_poisoned(segment, i)) return false;
  if (!runs || instruction.call.stream) return true;
  try {
    require_finite(plan_.graph, instruction.node, instruction.call);
    return true;
  } catch (...) {
    walk_.note_fault(segment, instruction.node, i + 1, std::current_exception());
    return false;
  }
}

// A node that changes bytes that are not its own is at fault.
bool ObservedRun::run_poisoned(std::int32_t segment, std::int32_t i) noexcept {
  const Instruction& instruction = program_.instructions[i];
  if (!poison_ || walk_.is_stopped_before(instruction.node)) return run_once(segment, i);
  bool ran = false;
  try {
    poison_->before(instruction.node, instruction.call);
    ran = true;
    if (!run_once(segment, i)) return false;
    poison_->after(instruction.node, instruction.call);
    return true;
  } catch (...) {
    walk_.note_fault(segment, instruction.node, ran ? i + 1 : i, std::current_exception());
    return false;
  }
}

// A node with effects that has run in this step is not run again.
bool ObservedRun::run_once(std::int32_t segment, std::int32_t i) noexcept {
  const Instruction& instruction = program_.instructions[i];
  const NodeId n = instruction.node;
  if (!kept_.watches_effects() || !kept_.has_effect(n) || walk_.is_stopped_before(n)) return walk_.run_instruction(segment, i);
  try {
    if (kept_.serve(n, instruction.call)) return true;
    if (!walk_.run_instruction(segment, i)) return false;
    kept_.note_results(n, instruction.call);
    return true;
  } catch (...) {
    walk_.note_fault(segment, n, i + 1, std::current_exception());
    return false;
  }
}

// Node by node: a node without a call, which is a view or a constant, can be watched too.
void ObservedRun::run_watched(std::int32_t segment) noexcept {
  const IndexRange range = walk_.range(segment), nodes = nodes_of(segment);
  const std::vector<NodeId>& all = plan_.segments[segment].nodes;
  const auto copy = [this](ValueId v) { return buffers_.read(v); };
  std::int32_t i = range.first;
  for (std::int32_t k = nodes.first; k < nodes.end; ++k) {
    const NodeId n = all[k];
    if (walk_.is_stopped_before(n)) return walk_.stop(segment, i);
    try {
      if (monitors_.watches(n)) monitors_.show_operands(n, copy);
      const bool called = i < range.end && program_.instructions[i].node == n;
      if (called && !run_timed(segment, i++)) return;
      if (monitors_.watches(n)) monitors_.show_results(n, copy);
      if (called && pauses_behind(segment, i - 1)) return;
    } catch (...) {
      return walk_.note_fault(segment, n, i, std::current_exception());
    }
  }
}

}  // namespace tapedeck::replay
