// Facts about values and nodes in words; see explain.h. What was decided about a value is said as the value log says it.
#include <tapedeck/viewer/plan/explain.h>

#include <tapedeck/engine/text/shown_name.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <cctype>

namespace tapedeck::viewer {

namespace {

bool valid_value(const Plan& plan, ValueId v) { return v >= 0 && at(v) < plan.values.size() && v < plan.graph.value_count(); }
bool valid_node(const Plan& plan, NodeId n) { return n >= 0 && n < plan.graph.node_count(); }

std::string reader_title(const Plan& plan, const Placement& p) {
  return valid_node(plan, p.reader) ? node_title(plan.graph, p.reader) : std::string("the end of the step");
}

std::string other_name(const PlanModel& model, const Placement& p) {
  return valid_value(model.plan(), p.other) ? model.name_of(p.other) : std::string("another value");
}

std::string place_text(const Plan& plan, ValueId v) {
  const Placement& p = plan.values[at(v)];
  const std::string offset = ", offset " + grouped(p.offset);
  switch (p.where) {
    case Where::arena:
      return "arena" + offset;
    case Where::input:
      return "the caller's input buffer" + offset;
    case Where::state:
      return "state buffer " + std::to_string(p.slot) + offset;
    case Where::constant:
      return "constant " + std::to_string(p.slot) + offset;
    case Where::output:
      return "output buffer " + std::to_string(p.slot) + offset;
    case Where::nowhere:
      break;
  }
  return "nowhere: it needs no bytes";
}

std::string lifetime_text(const Plan& plan, const Placement& p) {
  const NodeId nodes = plan.graph.node_count();
  const std::string from = p.birth == kNone ? "from the start" : "from node " + std::to_string(p.birth);
  if (p.death == kNone || p.death >= nodes) return from + " to the end";
  return from + " to node " + std::to_string(p.death) + " (" + grouped(p.death - std::max(p.birth, 0) + 1) + " of " +
         grouped(nodes) + ")";
}

// "Kept: a node at the peak makes or reads it."
std::string as_sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.back() == '.' ? text : text + ".";
}

// "%h, run 2 of 3" -> "%h (run 2 of 3)": in a list of operands a comma would divide it.
std::string in_brackets(std::string name) {
  const std::size_t comma = name.rfind(", run ");
  return comma == std::string::npos ? name : name.substr(0, comma) + " (" + name.substr(comma + 2) + ")";
}

}  // namespace

// The text names the results first, then the operands.
std::string node_line(const PlanModel& model, NodeId n) {
  const Graph& graph = model.graph();
  const Node& node = graph.nodes[at(n)];
  std::vector<ValueId> values;
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) values.push_back(v);
  for (const ValueId v : graph.inputs(node)) values.push_back(v);
  std::string text = graph.node_text(n);
  std::size_t from = 0;
  for (const ValueId v : values) {
    const std::string written = shown_name(graph, v), name = in_brackets(model.name_of(v));
    const std::size_t place = text.find(written, from);
    if (place == std::string::npos) break;
    text.replace(place, written.size(), name);
    from = place + name.size();
  }
  return text;
}

std::string node_title(const Graph& graph, NodeId n) {
  return "node " + std::to_string(n) + " (" + graph.nodes[at(n)].op->name + ")";
}

std::string source_of_costs(const Plan& plan) {
  if (plan.costs == "profile") return "measured";
  return plan.costs == "calibrated" ? "by the rates of this machine" : "estimated";
}

std::string node_time_text(const PlanModel& model, NodeId n) {
  const double us = model.values().node_us(n);
  if (us > 0) return "takes " + human_us(us) + ", " + source_of_costs(model.plan());
  return "takes no time by the cost model: one pixel wide where the axis is in microseconds";
}

std::string reason_sentence(const PlanModel& model, ValueId v) {
  const Plan& plan = model.plan();
  const Placement& p = plan.values[at(v)];
  switch (p.reason) {
    case Reason::input:
      return "Given by the caller; never overwritten.";
    case Reason::state:
      return "Persists from one step to the next.";
    case Reason::constant:
      return "A constant of the graph; never written.";
    case Reason::output:
      return "Returned to the caller, in a buffer of its own.";
    case Reason::temporary:
      return "Temporary: last read by " + reader_title(plan, p) + ".";
    case Reason::saved:
      return "Saved by the forward pass for " + reader_title(plan, p) + " in backward.";
    case Reason::recomputed:
      return "Recomputed just before " + reader_title(plan, p) + ", instead of kept since the forward pass.";
    case Reason::gradient:
      return "Made by backward; last read by " + reader_title(plan, p) + ".";
    case Reason::in_place:
      return "Computed in place, in the bytes of " + other_name(model, p) + ", which nobody reads afterwards.";
    case Reason::part:
      return "Written into its place in the bytes of " + other_name(model, p) + ", which joins it with others.";
    case Reason::alias:
      return "A window on the bytes of " + other_name(model, p) + "; needs no bytes of its own.";
    case Reason::update:
      return "Becomes the new value of a state buffer when the step ends.";
    case Reason::unread:
      return "Nobody reads it; its bytes are free again after its node.";
  }
  return "";
}

ValueFacts explain_value(const PlanModel& model, ValueId v) {
  ValueFacts facts;
  const Plan& plan = model.plan();
  const Value& value = plan.graph.values[at(v)];
  const ValueEntry& entry = model.values().entry(v);
  facts.name = model.name_of(v);
  facts.op = value.node == kNone ? role_name(value.role) : plan.graph.nodes[at(value.node)].op->name;
  if (value.node != kNone) facts.module = plan.graph.nodes[at(value.node)].origin.path.str();
  facts.type = to_string(value.type);
  facts.bytes = value.type.bytes();
  facts.role = role_of(plan, v);
  facts.place = place_text(plan, v);
  facts.lifetime = lifetime_text(plan, plan.values[at(v)]);
  facts.reason = reason_sentence(model, v);
  facts.decision = as_sentence(entry.rule);
  const auto readers = model.values().readers(v);
  facts.readers.assign(readers.begin(), readers.end());
  facts.copies = entry.copies;
  return facts;
}

}  // namespace tapedeck::viewer
