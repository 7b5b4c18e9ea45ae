// Reading results. The plan gives most bytes to several values, one after the other, and several executors may share them. So
// each question "is it still there" has an answer that names the node, the executor or the write that took the bytes.
#include <tapedeck/capture/replay/results.h>

#include <tapedeck/capture/replay/slot_checks.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tapedeck::replay {

namespace {

bool names_a_value(const Graph& g, const std::string& name) {
  return std::any_of(g.values.begin(), g.values.end(),
                     [&](const Value& value) { return !value.name.empty() && value.name.view() == name; });
}

// Whether a region of the node, at any depth, has a value of that name.
bool has_inside(const Graph& g, const Node& node, const std::string& name) {
  std::vector<const Graph*> inside;
  for (const Region& region : g.regions_of(node)) inside.push_back(region.get());
  while (!inside.empty()) {
    const Graph* graph = inside.back();
    inside.pop_back();
    if (names_a_value(*graph, name)) return true;
    for (const Region& region : graph->regions) inside.push_back(region.get());
  }
  return false;
}

// For an error about a name that the graph does not have: the loop or branch that has it inside, or a name that is near.
std::string hint_for(const Graph& g, const std::string& name) {
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (has_inside(g, g.nodes[n], name))
      return fmt::format(
          "; `{}` has one inside, which is another value in every pass: only the results of the node can be read",
          g.node_text(n));
  std::vector<std::string_view> names;
  for (const Value& value : g.values)
    if (!value.name.empty()) names.push_back(value.name.view());
  for (const Name& output : g.output_names) names.push_back(output.view());
  return did_you_mean(name, names);
}

}  // namespace

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

void Results::check_output(std::size_t index) const {
  const ValueId v = plan_.graph.outputs[index];
  const Name own_name = member_.name;
  if (!progress_.complete() && !progress_.under_way())
    throw ExecutionError(
        member_.dropped_by.empty()
            ? "no outputs: run() has not succeeded yet"
            : fmt::format("no outputs: the step of '{}' ended unfinished when '{}', which shares its memory, ran",
                          own_name.view(), member_.dropped_by.view()));
  if (!progress_.complete()) check_maker(v);
  const Family& family = *member_.family;
  const bool own = kept_[index] || plan_.values[v].where != Where::output;
  if (!own && !family.finished && family.user != &member_)
    throw ExecutionError(
        fmt::format("no outputs: a step of '{}', which writes those of '{}' anew, began and has not come to its end",
                    family.name.view(), own_name.view()));
  if (lost_[index] || (!kept_[index] && written_by_caller(v))) gone_to_caller(v);
}

Tensor Results::output(std::size_t index) const {
  check_output(index);
  const ValueId v = plan_.graph.outputs[index];
  if (kept_[index] && !device_.empty()) return to_device(*kept_[index], device_);
  if (kept_[index]) return from_bytes(kept_[index]->type(), kept_[index]->data());
  return device_.empty() ? buffers_.read(v) : buffers_.read_there({v})[0];
}

std::vector<Tensor> Results::outputs() const {
  std::vector<Tensor> all;
  const std::size_t n = plan_.graph.outputs.size();
  if (!device_.empty() && std::none_of(kept_.begin(), kept_.end(), [](const auto& kept) { return kept.has_value(); })) {
    for (std::size_t i = 0; i < n; ++i) check_output(i);
    return buffers_.read_there(plan_.graph.outputs);  // all copies together
  }
  for (std::size_t i = 0; i < n; ++i) all.push_back(output(i));
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
  throw UsageError(fmt::format("the plan's graph has no value '{}'{}", name, hint_for(g, name)));
}

Tensor Results::value(ValueId v) const {
  check_computed(v);
  if (const std::string why = why_gone(v); !why.empty()) gone(v, why);
  return buffers_.read(v);
}

bool Results::made(ValueId own) const {
  const Graph& g = plan_.graph;
  return g.values[own].node != kNone && !g.literal(g.nodes[g.values[own].node]);
}

void Results::check_computed(ValueId v) const {
  progress_.prepare();
  uses_.prepare();
  const Graph& g = plan_.graph;
  const ValueId own = uses_.owner(v);
  if (g.is_input(own) && !inputs_.is_set(own))
    throw ExecutionError(fmt::format("input '{}' was never set", inputs_.names()[own]));
  if (g.is_state(own) && !member_.state[own - g.n_inputs]->set)
    throw ExecutionError(fmt::format("state '{}' was never set", states_.names()[own - g.n_inputs]));
  if (made(own) && !progress_.complete() && !progress_.under_way() && !member_.dropped_by.empty())
    gone(v, fmt::format("the step ended unfinished when '{}', which shares its memory, ran", member_.dropped_by.view()));
  check_maker(v);
}

bool Results::holds_step() const {
  return (progress_.complete() || progress_.under_way()) && member_.memory->arena_user == &member_ &&
         member_.family->user == &member_;
}

std::string Results::why_gone(ValueId v, bool ask_overwriter) const {
  const Graph& g = plan_.graph;
  const ValueId own = uses_.owner(v);
  const Placement& p = plan_.values[own];
  const bool is_made = made(own);
  if (is_made && p.where == Where::output && member_.family->user != &member_)
    return fmt::format("'{}', which shares its memory, has run since", member_.family->name.view());
  const Memory& memory = *member_.memory;
  if (memory.arena_user != &member_ && is_made && (p.where == Where::arena || p.where == Where::state))
    return memory.arena_user.load() ? fmt::format("'{}', which shares its memory, has run since", memory.arena_user_name.view())
                                    : "an executor that shared its memory has run since, and left";
  // A view of state shows the bytes that the step saw.
  const bool shows = is_made || (g.is_state(own) && v != own && progress_.has_run(g.values[v].node));
  if (shows && p.where == Where::state && states_.overwritten(p.slot))
    return fmt::format("state '{}', in whose bytes it lies, has been set since", states_.names()[p.slot]);
  if (const NodeId n = ask_overwriter ? uses_.overwriter(v) : kNone; n != kNone)
    return fmt::format("`{}` has been computed in its bytes", g.node_text(n));
  if (shows && written_by_caller(v)) return caller_wrote(v);
  if (observed_.has_filled(v)) return "all that read it have run, and TAPEDECK_POISON has filled its bytes";
  return "";
}

// ---- values that are gone ----

void Results::check_maker(ValueId v) const {
  ValueId shown = v;  // the bytes of an operand that lies in place are there before the joined value is
  while (plan_.values[shown].reason == Reason::alias) shown = plan_.values[shown].other;
  const NodeId maker = plan_.graph.values[shown].node;
  if (maker != kNone && plan_.graph.literal(plan_.graph.nodes[maker])) return;
  if (!progress_.has_run(maker))
    throw ExecutionError(fmt::format("%{} is not there yet: `{}` has not run; it is node {} of {} in the order of the plan",
                                     plan_.graph.value_name(v), plan_.graph.node_text(maker), progress_.number(maker),
                                     plan_.graph.node_count()));
}

bool Results::written_by_caller(ValueId v) const {
  const Placement& p = plan_.values[v];
  return p.where == Where::state && states_.written_by_caller(p.slot);
}

std::string Results::caller_wrote(ValueId v) const {
  return fmt::format("it lies in state '{}', and the tensor bound to that has been written since",
                     states_.names()[plan_.values[v].slot]);
}

void Results::gone_to_caller(ValueId v) const { gone(v, caller_wrote(v)); }

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
