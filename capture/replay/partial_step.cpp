// A step in parts. A part is a cut to be reached:
//
//     segments           reached      run_nodes(2)      resume()
//     0: a b c           2            3                 3
//     1: d e  (after 0)  0            1                 2          c and d run first, then e
//
// run_part() checks the inputs that the part reads, starts the step if none is under way, limits the walk to the part, and
// moves the cut.
#include <tapedeck/capture/replay/partial_step.h>

#include <tapedeck/capture/replay/slot_checks.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tapedeck::replay {

PartialStep::PartialStep(const Plan& plan, Member& member, const InputSlots& inputs, StateSlots& states, KeptStep& kept,
                         const Program& program, SegmentWalk& walk, ObservedRun& observed, StepProgress& progress,
                         ByteUses& uses, StepRunner& runner)
    : plan_(plan),
      member_(member),
      inputs_(inputs),
      states_(states),
      kept_(kept),
      program_(program),
      walk_(walk),
      observed_(observed),
      progress_(progress),
      uses_(uses),
      runner_(runner) {}

void PartialStep::prepare() {
  progress_.prepare();
  uses_.prepare();
  if (phases_.empty()) phases_ = run_phases(plan_.graph);
  if (!progress_.under_way()) last_phase_ = kNone;
}

// ---- phases ----

bool PartialStep::has_nodes(Phase phase) const { return std::find(phases_.begin(), phases_.end(), phase) != phases_.end(); }

const PartialStep::Cut& PartialStep::phase_cut(Phase phase) {
  Cut& cut = cuts_[static_cast<int>(phase)];
  if (cut.empty()) cut = find_phase_cut(phase);
  return cut;
}

// How many nodes of each segment have run by the end of the phase. Throws UsageError if a node of the phase runs behind a node
// of a later phase.
PartialStep::Cut PartialStep::find_phase_cut(Phase phase) const {
  Cut cut;
  std::vector<NodeId> behind(plan_.segments.size(), kNone);  // by segment: a node of a later phase that it waits for
  for (std::size_t s = 0; s < plan_.segments.size(); ++s) {
    NodeId later = behind[s];
    std::int32_t last = 0, size = 0;
    for (const NodeId n : plan_.segments[s].nodes) {
      ++size;
      if (!uses_.called(n)) continue;
      if (phases_[n] > phase) {
        if (later == kNone) later = n;
      } else if (later == kNone) {
        last = size;
      } else {
        throw UsageError(fmt::format(
            "phases of this plan cannot run apart: `{}` ({}) runs behind `{}` ({}); plan with segments split at phases",
            plan_.graph.node_text(n), phase_name(phases_[n]), plan_.graph.node_text(later), phase_name(phases_[later])));
      }
    }
    cut.push_back(later == kNone ? size : last);
    if (later != kNone)
      for (const std::int32_t next : plan_.segments[s].successors) behind[next] = later;
  }
  return cut;
}

void PartialStep::run_phase(Phase phase, const RunOptions& options) {
  prepare();
  if (phase != Phase::forward && !has_nodes(phase))
    throw UsageError(fmt::format("the graph has no {} nodes to run apart", phase_name(phase)));
  const bool done = progress_.under_way() && last_phase_ >= static_cast<std::int32_t>(phase);
  if (done && phase == Phase::forward && !member_.memory->step_wrote) {
    runner_.drop();
    prepare();
  } else if (done) {
    throw ExecutionError(fmt::format("{} has run in this step: {}", phase_name(phase), progress_.due()));
  }
  for (const Phase before : {Phase::forward, Phase::backward})
    if (before < phase && has_nodes(before) && !(progress_.under_way() && progress_.reached(phase_cut(before))))
      throw ExecutionError(fmt::format("{} cannot run yet: {} is due", phase_name(phase), phase_name(before)));
  until_ = phase_cut(phase);
  for (std::size_t s = 0; s < until_.size(); ++s) until_[s] = std::max(until_[s], progress_.cut()[s]);
  run_part(false, &options);
  last_phase_ = static_cast<std::int32_t>(phase);
}

// ---- node by node ----

std::int32_t PartialStep::run_nodes(std::int64_t n) { return run_in_order(n, kNone); }
std::int32_t PartialStep::run_through(NodeId last) { return run_in_order(std::numeric_limits<std::int64_t>::max(), last); }

// The next n nodes of the serial order, or all up to `last`.
std::int32_t PartialStep::run_in_order(std::int64_t n, NodeId last, Pause* pause) {
  prepare();
  until_ = progress_.cut();
  for (std::size_t s = 0; s < until_.size() && n > 0; ++s) {
    const auto size = static_cast<std::int32_t>(plan_.segments[s].nodes.size());
    const bool ends_here = last != kNone && progress_.segment_of(last) == static_cast<std::int32_t>(s);
    const std::int64_t wanted = ends_here ? progress_.place(last) + 1 - until_[s] : n;
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(wanted, size - until_[s]));
    until_[s] += taken;
    n = ends_here ? 0 : n - taken;
  }
  run_part(true, nullptr, pause);
  return progress_.left();
}

std::int32_t PartialStep::back(std::int32_t n) {
  prepare();
  const std::int32_t all = plan_.graph.node_count();
  const std::int32_t done = all - (progress_.complete() ? 0 : progress_.left());
  runner_.rewind();
  try {
    return run_nodes(std::max(done - n, 0));
  } catch (...) {
    if (!progress_.under_way()) kept_.forget();  // the next step is another one
    throw;
  }
}

void PartialStep::resume(const RunOptions& options) {
  if (!progress_.under_way()) throw ExecutionError("resume: no step is under way");
  until_.clear();
  for (const Segment& s : plan_.segments) until_.push_back(static_cast<std::int32_t>(s.nodes.size()));
  run_part(false, &options);
}

// ---- breakpoints ----

// The first node to come at which the breakpoints stop, whatever the values are; else the end.
Stop PartialStep::next_stop(const Breakpoints& breakpoints) const {
  const Graph& g = plan_.graph;
  std::vector<bool> numbered(g.nodes.size());
  for (const NodeId n : breakpoints.nodes) {
    if (n < 0 || n >= g.node_count())
      throw UsageError(fmt::format("there is no node {}: the plan has nodes 0 to {}", n, g.node_count() - 1));
    numbered[n] = true;
  }
  for (const std::string& name : breakpoints.names)
    if (!Monitors::any_match(g, name, {}))
      throw UsageError(fmt::format("no node's op, module path or result is named like '{}'", name));
  for (std::size_t s = 0; s < plan_.segments.size(); ++s)
    for (std::size_t k = static_cast<std::size_t>(progress_.cut()[s]); k < plan_.segments[s].nodes.size(); ++k) {
      const NodeId n = plan_.segments[s].nodes[k];
      if (numbered[n]) return {.reason = StopReason::node, .node = n};
      for (const std::string& name : breakpoints.names)
        if (Monitors::is_named(g, n, name)) return {.reason = StopReason::name, .node = n};
    }
  return {};
}

Stop PartialStep::run_until(const Breakpoints& breakpoints) {
  prepare();
  Stop stop = next_stop(breakpoints);
  Pause pause{.at_nan = breakpoints.nan, .at_infinity = breakpoints.infinite, .asked = breakpoints.pause};
  const bool watches = breakpoints.nan || breakpoints.infinite || breakpoints.pause;
  run_in_order(std::numeric_limits<std::int64_t>::max(), stop.node, watches ? &pause : nullptr);
  if (pause.behind != kNone) {
    stop.node = pause.behind;
    stop.reason = pause.found ? StopReason::not_finite : StopReason::pause;
  }
  if (pause.found) {
    stop.value = plan_.graph.nodes[stop.node].first_output + pause.found->output;
    stop.element = pause.found->element;
    stop.number = pause.found->number;
  }
  stop.nodes_left = progress_.left();
  return stop;
}

// ---- one part ----

// Runs every segment from where it is to where `until_` says.
void PartialStep::run_part(bool one_by_one, const RunOptions* options, Pause* pause) {
  const Cut &from = progress_.cut(), &until = until_;
  const std::int32_t before = progress_.left();
  std::int32_t left = before;
  RunExtent extent;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(until.size()); ++s) {
    if (until[s] == from[s]) continue;
    left -= until[s] - from[s];
    if (one_by_one) extent.in_order = {extent.in_order.end == 0 ? s : extent.in_order.first, s + 1};
  }
  extent.pause = pause;
  check_inputs();
  if (left == 0 || !progress_.under_way()) runner_.check_ready(left == 0);
  Memory& memory = *member_.memory;
  if (progress_.under_way()) {
    heed_callers_writes();
  } else {
    runner_.start(false, true);
    memory.step_of = &member_;
    memory.step_wrote = false;
  }
  set_ranges();
  struct Unlimited {  // also after an error the next run() is a whole one
    SegmentWalk& walk;
    ~Unlimited() { walk.limit(nullptr); }
  } const unlimited{walk_};
  walk_.limit(instructions_.data());
  extent.nodes = nodes_.data();
  extent.nodes_done = plan_.graph.node_count() - before;
  extent.wrote_state = memory.step_wrote;
  kept_.before_part(progress_, until);
  const bool observed = left < before && runner_.walk(options, extent);
  if (pause && pause->behind != kNone) left = stop_behind(pause->behind);
  progress_.advance(until, left);
  kept_.after_part(progress_);
  memory.step_wrote = walk_.wrote_state();
  progress_.set_complete(left == 0);
  member_.family->finished = left == 0;
  states_.note_versions();
  if (left == 0) memory.step_of = nullptr;
  if (observed) observed_.tell_end(left == 0);
}

// The part was paused behind this node: what it was to run after it is still to come. Returns how many nodes are left.
std::int32_t PartialStep::stop_behind(NodeId last) {
  const std::int32_t in = progress_.segment_of(last);
  until_[in] = progress_.place(last) + 1;
  std::int32_t left = 0;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(until_.size()); ++s) {
    if (s > in) until_[s] = progress_.cut()[s];
    left += static_cast<std::int32_t>(plan_.segments[s].nodes.size()) - until_[s];
  }
  return left;
}

// The inputs that the nodes of the part read must have been given.
void PartialStep::check_inputs() const {
  const Graph& g = plan_.graph;
  std::vector<std::string> missing;
  for (std::size_t s = 0; s < until_.size(); ++s)
    for (std::int32_t k = progress_.cut()[s]; k < until_[s]; ++k)
      for (const ValueId v : g.inputs(g.nodes[plan_.segments[s].nodes[k]]))
        if (const ValueId from = uses_.owner(v); g.is_input(from) && !inputs_.is_set(from))
          missing.push_back("input '" + inputs_.names()[from] + "'");
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (!missing.empty()) throw ExecutionError("never set: " + listed(missing));
}

void PartialStep::set_ranges() {
  nodes_.resize(until_.size());
  instructions_.resize(until_.size());
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(until_.size()); ++s) {
    nodes_[s] = {progress_.cut()[s], until_[s]};
    instructions_[s] = {instruction_at(s, nodes_[s].first), instruction_at(s, nodes_[s].end)};
  }
}

// The number of the first instruction behind the first `n_nodes` nodes of the segment.
std::int32_t PartialStep::instruction_at(std::int32_t segment, std::int32_t n_nodes) const {
  const IndexRange range = program_.segments[segment];
  const std::vector<NodeId>& all = plan_.segments[segment].nodes;
  if (n_nodes == static_cast<std::int32_t>(all.size())) return range.end;
  const auto first = program_.instructions.begin();
  const auto at = std::lower_bound(first + range.first, first + range.end, all[n_nodes],
                                   [](const Instruction& i, NodeId n) { return i.node < n; });
  return static_cast<std::int32_t>(at - first);
}

// ---- between two parts ----

void PartialStep::check_unread(std::int32_t input) const {
  if (const NodeId n = uses_.reader_of_input(input); n != kNone)
    throw ExecutionError(
        fmt::format("input '{}' was read by `{}` in the step under way; resume() finishes it, restart() drops it",
                    inputs_.names()[input], plan_.graph.node_text(n)));
}

// The caller may have written bound tensors since the last part:
//  - no node has used the old bytes: the rest of the step reads the new ones, as it does with inputs
//  - no node to come reads them: they are the caller's from here on
//  - otherwise the step ends with an error
void PartialStep::heed_callers_writes() {
  const Graph& g = plan_.graph;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(member_.state.size()); ++s) {
    if (!states_.written_since(s)) continue;
    if (!kept_.state(s) && uses_.has_used_state(s)) states_.lose(s);
    if (const NodeId reader = uses_.reader_of_used_state(s); reader != kNone) {
      const bool torn = runner_.drop();
      throw ExecutionError(fmt::format(
          "the step has ended: the tensor bound to state '{}' was written in the middle of it, and `{}` was still to read "
          "what earlier nodes had used; write it before the step or after it{}",
          states_.names()[s], g.node_text(reader),
          torn ? "; state had been written already, so it must be set again before the next run" : ""));
    }
    const auto is_to_come = [&](const Update& u) {
      return u.state == g.n_inputs + s && !progress_.has_run(g.values[u.value].node);
    };
    if (std::none_of(g.updates.begin(), g.updates.end(), is_to_come)) states_.give_up(s);
  }
}

}  // namespace tapedeck::replay
