// Reading results. The plan gives most bytes to several values, one after the other, and several executors may share them. So
// each question "is it still there" has an answer that names the node, the executor or the write that took the bytes.
#include <tapedeck/capture/replay/results.h>

#include <tapedeck/capture/replay/slot_checks.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tapedeck::replay {

Results::Results(const Plan& plan, const Member& member, const Buffers& buffers, const InputSlots& inputs,
                 const StateSlots& states, const ObservedRun& observed, StepProgress& progress, ByteUses& uses)
    : plan_(plan),
      member_(member),
      buffers_(buffers),
      inputs_(inputs),
      states_(states),
      observed_(observed),
      progress_(progress),
      uses_(uses) {
  const Graph& g = plan.graph;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const bool named = i < g.output_names.size() && !g.output_names[i].empty();
    names_.push_back(named ? g.output_names[i].str() : g.value_name(g.outputs[i]));
  }
  kept_.resize(g.outputs.size());
  lost_.resize(g.outputs.size());
}

std::size_t Results::find(const std::string& name) const {
  return static_cast<std::size_t>(slot_named(names_, "output", name));
}

// ---- outputs ----

Tensor Results::output(std::size_t index) const {
  const ValueId v = plan_.graph.outputs[index];
  const Name own_name = member_.name;
  if (!progress_.complete() && !progress_.under_way())
    throw ExecutionError(
        member_.dropped_by.empty()
            ? "no outputs: run() has not succeeded yet"
            : fmt::format("no outputs: the step of '{}' ended unfinished when '{}', which shares its memory, ran",
                          own_name.view(), member_.dropped_by.view()));
  if (!progress_.complete()) check_computed(v);
  const Family& family = *member_.family;
  const bool own = kept_[index] || plan_.values[v].where != Where::output;
  if (!own && !family.finished && family.user != &member_)
    throw ExecutionError(
        fmt::format("no outputs: a step of '{}', which writes those of '{}' anew, began and has not come to its end",
                    family.name.view(), own_name.view()));
  if (lost_[index] || (!kept_[index] && written_by_caller(v))) gone_to_caller(v);
  if (kept_[index]) return from_bytes(kept_[index]->type(), kept_[index]->data());
  return buffers_.read(v);
}

std::vector<Tensor> Results::outputs() const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < plan_.graph.outputs.size(); ++i) all.push_back(output(i));
  return all;
}

void Results::begin_step() {
  std::fill(kept_.begin(), kept_.end(), std::nullopt);
  std::fill(lost_.begin(), lost_.end(), false);
}

void Results::keep_those_in(BufferId buffer) {
  if (!progress_.complete()) return;
  for (std::size_t i = 0; i < plan_.graph.outputs.size(); ++i) {
    const ValueId v = plan_.graph.outputs[i];
    if (kept_[i] || buffers_.table().of(plan_.values[v]) != buffer) continue;
    if (written_by_caller(v)) lost_[i] = true;
    if (!lost_[i]) kept_[i] = buffers_.read(v);
  }
}

void Results::keep_those_in(const StateValue& value) {
  for (std::size_t s = 0; s < member_.state.size(); ++s)
    if (member_.state[s].get() == &value || member_.state[s]->overlaps(value))
      keep_those_in(buffers_.table().state(static_cast<std::int32_t>(s)));
}

// ---- any value ----

ValueId Results::find_value(const std::string& name) const {
  const Graph& g = plan_.graph;
  for (ValueId v = 0; v < g.value_count(); ++v)
    if (!g.values[v].name.empty() && g.values[v].name.view() == name) return v;
  ValueId v = kNone;
  const char* const end = name.data() + name.size();
  if (const auto [at, error] = std::from_chars(name.data(), end, v);
      error == std::errc() && at == end && v >= 0 && v < g.value_count())
    if (g.value_name(v) == name) return v;
  for (std::size_t i = 0; i < g.output_names.size(); ++i)
    if (!name.empty() && g.output_names[i].view() == name) return g.outputs[i];
  throw UsageError(fmt::format("the plan's graph has no value '{}'", name));
}

Tensor Results::value(ValueId v) const {
  progress_.prepare();
  uses_.prepare();
  const Graph& g = plan_.graph;
  const ValueId own = uses_.owner(v);
  if (g.is_input(own) && !inputs_.is_set(own))
    throw ExecutionError(fmt::format("input '{}' was never set", inputs_.names()[own]));
  if (g.is_state(own) && !member_.state[own - g.n_inputs]->set)
    throw ExecutionError(fmt::format("state '{}' was never set", states_.names()[own - g.n_inputs]));
  const Placement& p = plan_.values[own];
  const bool made = g.values[own].node != kNone && !g.literal(g.nodes[g.values[own].node]);
  if (made && !progress_.complete() && !progress_.under_way() && !member_.dropped_by.empty())
    gone(v, fmt::format("the step ended unfinished when '{}', which shares its memory, ran", member_.dropped_by.view()));
  check_computed(v);
  if (made && p.where == Where::output && member_.family->user != &member_)
    gone(v, fmt::format("'{}', which shares its memory, has run since", member_.family->name.view()));
  const Memory& memory = *member_.memory;
  if (memory.arena_user != &member_ && made && (p.where == Where::arena || p.where == Where::state))
    gone(v, memory.arena_user.load()
                ? fmt::format("'{}', which shares its memory, has run since", memory.arena_user_name.view())
                : "an executor that shared its memory has run since, and left");
  // A view of state shows the bytes that the step saw.
  const bool shows = made || (g.is_state(own) && v != own && progress_.has_run(g.values[v].node));
  if (shows && p.where == Where::state && states_.overwritten(p.slot))
    gone(v, fmt::format("state '{}', in whose bytes it lies, has been set since", states_.names()[p.slot]));
  if (const NodeId n = uses_.overwriter(v); n != kNone)
    gone(v, fmt::format("`{}` has been computed in its bytes", g.node_text(n)));
  if (shows && written_by_caller(v)) gone_to_caller(v);
  if (observed_.has_filled(v)) gone(v, "all that read it have run, and TAPEDECK_POISON has filled its bytes");
  return buffers_.read(v);
}

// ---- values that are gone ----

void Results::check_computed(ValueId v) const {
  ValueId shown = v;  // the bytes of an operand that lies in place are there before the joined value is
  while (plan_.values[shown].reason == Reason::alias) shown = plan_.values[shown].other;
  const NodeId maker = plan_.graph.values[shown].node;
  if (maker != kNone && plan_.graph.literal(plan_.graph.nodes[maker])) return;
  if (!progress_.has_run(maker))
    throw ExecutionError(
        fmt::format("%{} is not there yet: `{}` has not run", plan_.graph.value_name(v), plan_.graph.node_text(maker)));
}

bool Results::written_by_caller(ValueId v) const {
  const Placement& p = plan_.values[v];
  return p.where == Where::state && states_.written_by_caller(p.slot);
}

void Results::gone_to_caller(ValueId v) const {
  gone(v, fmt::format("it lies in state '{}', and the tensor bound to that has been written since",
                      states_.names()[plan_.values[v].slot]));
}

// Names the graph, the node and its line.
void Results::gone(ValueId v, const std::string& why) const {
  const NodeId maker = plan_.graph.values[v].node;
  std::string made;
  if (maker != kNone) {
    const Name site = plan_.graph.nodes[maker].origin.site;
    made = fmt::format("; made by [{}] {}{}", plan_.graph.nodes[maker].op->name, plan_.graph.node_text(maker),
                       site.empty() ? "" : fmt::format(" ({})", site.view()));
  }
  throw ExecutionError(
      fmt::format("%{} of '{}' is not there any more: {}{}", plan_.graph.value_name(v), member_.name.view(), why, made));
}

}  // namespace tapedeck::replay
