// A step in parts: forward, backward and update apart, to any node and on from there.
//
// What has run is a cut: so many nodes of every segment, and a segment is begun only when those it waits for are complete. So
// whatever parts a step is made of, its nodes run in an order that the segment DAG allows, and what the plan promises of bytes
// holds.
#include <tapedeck/capture/replay/executor_impl.h>

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/plan/byte_owners.h>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>

namespace tapedeck {

using replay::StepRange;

replay::Parts::Parts(const Plan& plan, const Program& program)
    : owner(byte_owners(plan)),
      segment_of(plan.graph.nodes.size()),
      place(plan.graph.nodes.size()),
      called(plan.graph.nodes.size()),
      phases(run_phases(plan.graph)),
      plan_(plan),
      program_(program) {
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t k = 0; k < plan.segments[s].nodes.size(); ++k) {
      segment_of[plan.segments[s].nodes[k]] = static_cast<std::int32_t>(s);
      place[plan.segments[s].nodes[k]] = static_cast<std::int32_t>(k);
    }
  for (const Step& step : program.steps) called[step.node] = true;
  nodes.resize(plan.segments.size());
  steps.resize(plan.segments.size());
}

std::int32_t replay::Parts::step_at(std::int32_t segment, std::int32_t n_nodes) const {
  const StepRange range = program_.segments[segment];
  const std::vector<NodeId>& all = plan_.segments[segment].nodes;
  if (n_nodes == static_cast<std::int32_t>(all.size())) return range.end;
  const auto first = program_.steps.begin();
  const auto at = std::lower_bound(first + range.first, first + range.end, all[n_nodes],
                                   [](const Step& s, NodeId n) { return s.node < n; });
  return static_cast<std::int32_t>(at - first);
}

// ---- the step under way ----

// Another executor on this memory is in the middle of a step: its values are about to be overwritten.
void Executor::Impl::claim_memory() {
  if (memory->step_of == this) return;
  if (memory->step_wrote)
    throw ExecutionError(
        fmt::format("'{}', which shares this memory, is in the middle of a step that has written state; it must resume() or "
                    "restart() first",
                    memory->step_of.load()->name.view()));
  memory->step_of.load()->dropped_by = name;
  memory->step_of = nullptr;
}

void Executor::Impl::need_parts() {
  if (!parts) parts = std::make_unique<replay::Parts>(plan, program);
  if (under_way()) return;
  parts->reached.assign(plan.segments.size(), 0);
  parts->left = plan.graph.node_count();
  parts->run_phase = kNone;
}

bool Executor::Impl::reached(const std::vector<std::int32_t>& cut) const {
  for (std::size_t s = 0; s < cut.size(); ++s)
    if (parts->reached[s] < cut[s]) return false;
  return true;
}

// "12 of 30 nodes have run, next is `...`".
std::string Executor::Impl::due() const {
  const std::int32_t all = plan.graph.node_count();
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    const std::vector<NodeId>& nodes = plan.segments[s].nodes;
    if (parts->reached[s] == static_cast<std::int32_t>(nodes.size())) continue;
    return fmt::format("{} of {} nodes have run, next is `{}`", all - parts->left, all,
                       plan.graph.node_text(nodes[parts->reached[s]]));
  }
  return fmt::format("all {} nodes have run", all);
}

// Runs every segment from where it is to where parts->until says.
void Executor::Impl::run_part(bool one_by_one, const RunOptions* options) {
  replay::Parts& p = *parts;
  const std::vector<std::int32_t>& until = p.until;
  StepRange touched{static_cast<std::int32_t>(until.size()), 0};
  std::vector<std::string> missing;
  std::int32_t left = p.left;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(until.size()); ++s) {
    if (until[s] == p.reached[s]) continue;
    touched = {std::min(touched.first, s), s + 1};
    left -= until[s] - p.reached[s];
    for (std::int32_t k = p.reached[s]; k < until[s]; ++k)
      for (const ValueId v : plan.graph.inputs(plan.graph.nodes[plan.segments[s].nodes[k]]))
        if (const ValueId from = p.owner[v]; plan.graph.is_input(from) && !input_set[from])
          missing.push_back("input '" + input_names[from] + "'");
  }
  if (!missing.empty()) {
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    throw ExecutionError("never set: " + replay::listed(missing));
  }
  if (left == 0 || !under_way()) check_ready(left == 0);
  if (under_way()) {
    heed_callers_writes();
  } else {
    start_step(false);
    memory->step_of = this;
    memory->step_wrote = false;
  }
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(until.size()); ++s) {
    p.nodes[s] = {p.reached[s], until[s]};
    p.steps[s] = {p.step_at(s, p.reached[s]), p.step_at(s, until[s])};
    runs[s].stopped = p.steps[s].end;
  }
  struct Restore {  // whatever happens, the next run() is a whole one
    Impl& impl;
    ~Restore() { impl.ranges = impl.program.segments.data(); }
  } const restore{*this};
  ranges = p.steps.data();
  if (left < p.left)
    walk(options, one_by_one ? touched : StepRange{});
  else
    observed = false;
  p.reached = until;
  p.left = left;
  memory->step_wrote = wrote_state();
  has_outputs = family->finished = left == 0;
  note_versions();
  if (left == 0) memory->step_of = nullptr;
  if (observed) meter.end(left == 0);
}

// ---- phases ----

// By segment: how many of its nodes have run by the end of the phase.
const std::vector<std::int32_t>& Executor::Impl::phase_cut(Phase phase) {
  replay::Parts& p = *parts;
  std::vector<std::int32_t>& cut = p.cuts[static_cast<int>(phase)];
  if (!cut.empty() || plan.segments.empty()) return cut;
  std::vector<std::int32_t> found;
  std::vector<NodeId> behind(plan.segments.size(), kNone);  // by segment: a node of a later phase that it waits for
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    NodeId later = behind[s];
    std::int32_t last = 0, size = 0;
    for (const NodeId n : plan.segments[s].nodes) {
      ++size;
      if (!p.called[n]) continue;
      if (p.phases[n] > phase) {
        if (later == kNone) later = n;
      } else if (later == kNone) {
        last = size;
      } else {
        throw UsageError(fmt::format(
            "phases of this plan cannot run apart: `{}` ({}) runs behind `{}` ({}); plan with segments split at phases",
            plan.graph.node_text(n), phase_name(p.phases[n]), plan.graph.node_text(later), phase_name(p.phases[later])));
      }
    }
    found.push_back(later == kNone ? size : last);
    if (later != kNone)
      for (const std::int32_t next : plan.segments[s].successors) behind[next] = later;
  }
  return cut = std::move(found);
}

void Executor::Impl::run_phase(Phase phase, const RunOptions& options) {
  need_parts();
  const auto has_nodes = [&](Phase p) {
    return std::find(parts->phases.begin(), parts->phases.end(), p) != parts->phases.end();
  };
  if (phase != Phase::forward && !has_nodes(phase))
    throw UsageError(fmt::format("the graph has no {} nodes to run apart", phase_name(phase)));
  const bool done = under_way() && parts->run_phase >= static_cast<std::int32_t>(phase);
  if (done && phase == Phase::forward && !memory->step_wrote) {
    drop_step();
    need_parts();
  } else if (done) {
    throw ExecutionError(fmt::format("{} has run in this step: {}", phase_name(phase), due()));
  }
  for (const Phase before : {Phase::forward, Phase::backward})
    if (before < phase && has_nodes(before) && !(under_way() && reached(phase_cut(before))))
      throw ExecutionError(fmt::format("{} cannot run yet: {} is due", phase_name(phase), phase_name(before)));
  std::vector<std::int32_t>& until = parts->until = phase_cut(phase);
  for (std::size_t s = 0; s < until.size(); ++s) until[s] = std::max(until[s], parts->reached[s]);
  run_part(false, &options);
  parts->run_phase = static_cast<std::int32_t>(phase);
}

// ---- node by node ----

// The next n nodes of the serial order, or all up to `last`. Returns how many are left of the step.
std::int32_t Executor::Impl::run_in_order(std::int64_t n, NodeId last) {
  need_parts();
  std::vector<std::int32_t>& until = parts->until = parts->reached;
  for (std::size_t s = 0; s < until.size() && n > 0; ++s) {
    const auto size = static_cast<std::int32_t>(plan.segments[s].nodes.size());
    const bool ends_here = last != kNone && parts->segment_of[last] == static_cast<std::int32_t>(s);
    const std::int64_t wanted = ends_here ? parts->place[last] + 1 - until[s] : n;
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(wanted, size - until[s]));
    until[s] += taken;
    n = ends_here ? 0 : n - taken;
  }
  run_part(true, nullptr);
  return parts->left;
}

void Executor::Impl::resume(const RunOptions& options) {
  if (!under_way()) throw ExecutionError("resume: no step is under way");
  parts->until.clear();
  for (const Segment& s : plan.segments) parts->until.push_back(static_cast<std::int32_t>(s.nodes.size()));
  run_part(false, &options);
}

// ---- what can be read and set in between ----

bool Executor::Impl::has_run(NodeId node) const {
  if (has_outputs || node == kNone) return true;
  return under_way() && parts->place[node] < parts->reached[parts->segment_of[node]];
}

// An input may change as long as no node has read it.
void Executor::Impl::check_unread(std::int32_t input) const {
  const Graph& g = plan.graph;
  for (NodeId n = 0; n < g.node_count(); ++n)
    for (const ValueId v : g.inputs(g.nodes[n]))
      if (parts->owner[v] == input && parts->called[n] && has_run(n))
        throw ExecutionError(
            fmt::format("input '{}' was read by `{}` in the step under way; resume() finishes it, restart() drops it",
                        input_names[input], g.node_text(n)));
}

void Executor::Impl::check_computed(ValueId v) const {
  ValueId shown = v;  // a part is there before what joins it
  while (plan.values[shown].reason == Reason::alias) shown = plan.values[shown].other;
  const NodeId maker = plan.graph.values[shown].node;
  if (maker != kNone && plan.graph.literal(plan.graph.nodes[maker])) return;
  if (!has_run(maker))
    throw ExecutionError(
        fmt::format("%{} is not there yet: `{}` has not run", plan.graph.value_name(v), plan.graph.node_text(maker)));
}

// The node that has run and lies in the value's bytes now; kNone if they are still its own. Those who share bytes are ordered
// as their numbers.
NodeId Executor::Impl::overwriter(ValueId v) const {
  const Graph& g = plan.graph;
  const ValueId own = parts->owner[v];
  const Placement& p = plan.values[own];
  const std::int64_t end = p.offset + g.values[own].type.bytes();
  const auto overlaps = [&](std::int64_t offset, std::int64_t bytes) {
    return bytes > 0 && offset < end && p.offset < offset + bytes;
  };
  for (NodeId n = g.values[own].node + 1; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    bool writes = p.where == Where::arena && overlaps(plan.workspace[n].offset, plan.workspace[n].bytes);
    for (ValueId w = node.first_output; w < node.first_output + node.n_outputs; ++w) {
      const ValueId whole = parts->owner[w];  // a part spoils what was where the whole will be
      const Placement& q = plan.values[whole];
      if (plan.values[w].reason == Reason::alias || whole == own || q.where != p.where || q.slot != p.slot) continue;
      writes |= overlaps(q.offset, g.values[whole].type.bytes());
    }
    if (writes && has_run(n)) return n;
  }
  return kNone;
}

ValueId Executor::Impl::find_value(const std::string& name) const {
  const Graph& g = plan.graph;
  for (ValueId v = 0; v < g.value_count(); ++v)
    if (!g.values[v].name.empty() && g.values[v].name.view() == name) return v;
  ValueId v = kNone;
  const char* const end = name.data() + name.size();
  if (const auto [at, error] = std::from_chars(name.data(), end, v);
      error == std::errc() && at == end && v >= 0 && v < g.value_count())
    if (g.value_name(v) == name) return v;
  throw UsageError(fmt::format("the plan's graph has no value '{}'", name));
}

Tensor Executor::Impl::value(ValueId v) {
  need_parts();
  const Graph& g = plan.graph;
  const ValueId own = parts->owner[v];
  if (g.is_input(own) && !input_set[own]) throw ExecutionError(fmt::format("input '{}' was never set", input_names[own]));
  if (g.is_state(own) && !state[own - g.n_inputs]->set)
    throw ExecutionError(fmt::format("state '{}' was never set", state_names[own - g.n_inputs]));
  const Placement& p = plan.values[own];
  const bool made = g.values[own].node != kNone && !g.literal(g.nodes[g.values[own].node]);
  if (made && !has_outputs && !under_way() && !dropped_by.empty())
    gone(v, fmt::format("the step ended unfinished when '{}', which shares its memory, ran", dropped_by.view()));
  check_computed(v);
  if (made && p.where == Where::output && family->user != this)
    gone(v, fmt::format("'{}', which shares its memory, has run since", family->name.view()));
  if (memory->arena_user != this && made && (p.where == Where::arena || p.where == Where::state))
    gone(v, memory->arena_user.load()
                ? fmt::format("'{}', which shares its memory, has run since", memory->arena_user_name.view())
                : "an executor that shared its memory has run since, and left");
  // A window on state is what the step saw there.
  const bool shows = made || (g.is_state(own) && v != own && has_run(g.values[v].node));
  if (shows && p.where == Where::state && state[p.slot]->written != state_stamps[p.slot])
    gone(v, fmt::format("state '{}', in whose bytes it lies, has been set since", state_names[p.slot]));
  if (const NodeId n = overwriter(v); n != kNone) gone(v, fmt::format("`{}` has been computed in its bytes", g.node_text(n)));
  if (shows && written_by_caller(v)) gone_to_caller(v);
  if (poison && poison->is_dead(v)) gone(v, "all that read it have run, and TAPEDECK_POISON has filled its bytes");
  return read(v);
}

}  // namespace tapedeck
