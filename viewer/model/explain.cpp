// Facts about values and nodes in words, and the filter of the table of nodes; see explain.h.
//
//   "conv bytes>1MiB -is:clone"  ->  the terms {word conv}, {bytes> 1048576}, {not is clone}; a node must meet all of them
#include <tapedeck/viewer/model/explain.h>

#include <tapedeck/viewer/model/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace tapedeck::viewer {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

bool valid_value(const Plan& plan, ValueId v) { return v >= 0 && at(v) < plan.values.size() && v < plan.graph.value_count(); }
bool valid_node(const Plan& plan, NodeId n) { return n >= 0 && n < plan.graph.node_count(); }

std::string percent_name(const Graph& graph, ValueId v) { return "%" + graph.value_name(v); }

std::string reader_title(const Plan& plan, const Placement& p) {
  return valid_node(plan, p.reader) ? node_title(plan.graph, p.reader) : std::string("the end of the step");
}

std::string other_name(const Plan& plan, const Placement& p) {
  return valid_value(plan, p.other) ? percent_name(plan.graph, p.other) : std::string("another value");
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

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool contains(const std::string& where, const std::string& what) { return lower(where).find(what) != std::string::npos; }

}  // namespace

std::string node_title(const Graph& graph, NodeId n) {
  return "node " + std::to_string(n) + " (" + graph.nodes[at(n)].op->name + ")";
}

std::string reason_sentence(const Plan& plan, ValueId v) {
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
      return "Computed in place, in the bytes of " + other_name(plan, p) + ", which nobody reads afterwards.";
    case Reason::part:
      return "Written into its place in the bytes of " + other_name(plan, p) + ", which joins it with others.";
    case Reason::alias:
      return "A window on the bytes of " + other_name(plan, p) + "; needs no bytes of its own.";
    case Reason::update:
      return "Becomes the new value of a state buffer when the step ends.";
    case Reason::unread:
      return "Nobody reads it; its bytes are free again after its node.";
  }
  return "";
}

ValueFacts explain_value(const Plan& plan, ValueId v) {
  ValueFacts facts;
  const Graph& graph = plan.graph;
  const Value& value = graph.values[at(v)];
  const Placement& p = plan.values[at(v)];
  facts.name = percent_name(graph, v);
  facts.op = value.node == kNone ? role_name(value.role) : graph.nodes[at(value.node)].op->name;
  facts.type = to_string(value.type);
  facts.bytes = value.type.bytes();
  facts.role = role_of(plan, v);
  facts.place = place_text(plan, v);
  facts.lifetime = lifetime_text(plan, p);
  facts.reason = reason_sentence(plan, v);
  const std::string first = value.node == kNone ? "" : graph.value_name(graph.nodes[at(value.node)].first_output);
  const ValueId nth = value.node == kNone ? 0 : v - graph.nodes[at(value.node)].first_output;
  const Origin origin = value.node == kNone ? Origin{} : graph.nodes[at(value.node)].origin;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[at(n)];
    const auto inputs = graph.inputs(node);
    if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) facts.readers.push_back(n);
    if (node.n_outputs <= nth || value.node == kNone) continue;
    if (node.origin.clone && n != value.node && node.origin.of.view() == first) facts.clones.push_back(node.first_output + nth);
    if (origin.clone && !node.origin.clone && graph.value_name(node.first_output) == origin.of.view())
      facts.clone_of = node.first_output + nth;
  }
  return facts;
}

NodeFilter::NodeFilter(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    Term term;
    if (word.size() > 1 && word[0] == '-') {
      term.negated = true;
      word.erase(0, 1);
    }
    const std::size_t split = word.find_first_of(":<>");
    if (split != std::string::npos && split > 0) {
      term.key = word[split] == ':' ? lower(word.substr(0, split)) : lower(word.substr(0, split)) + word[split];
      word.erase(0, split + 1);
      // A term that is only half typed ("op:", "bytes>1k") is ignored.
      const bool sized = term.key == "bytes>" || term.key == "bytes<";
      if (word.empty() || (sized && !parse_bytes(word, &term.bytes))) continue;
    }
    term.word = lower(word);
    terms_.push_back(term);
  }
}

bool NodeFilter::holds(const Term& term, const Plan& plan, NodeId n) {
  const Graph& graph = plan.graph;
  const Node& node = graph.nodes[at(n)];
  const auto any_output = [&](auto&& test) {
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (test(v)) return true;
    return false;
  };
  const auto type_matches = [&](ValueId v) { return contains(to_string(graph.values[at(v)].type), term.word); };
  const auto name_matches = [&](ValueId v) { return contains("%" + graph.value_name(v), term.word); };
  const auto reason_matches = [&](ValueId v) {
    return contains(reason_name(plan.values[at(v)].reason), term.word) ||
           contains(role_class_name(role_of(plan, v)), term.word);
  };
  if (term.key == "op") return contains(node.op->name, term.word);
  if (term.key == "phase") return contains(phase_name(node.origin.phase), term.word);
  if (term.key == "type") return any_output(type_matches);
  if (term.key == "name") return any_output(name_matches);
  if (term.key == "reason" || term.key == "role") return any_output(reason_matches);
  if (term.key == "is") return term.word == "clone" && node.origin.clone;
  if (term.key == "bytes>") return any_output([&](ValueId v) { return graph.values[at(v)].type.bytes() > term.bytes; });
  if (term.key == "bytes<") return any_output([&](ValueId v) { return graph.values[at(v)].type.bytes() < term.bytes; });
  return contains(node.op->name, term.word) || contains(node.origin.path.str(), term.word) || any_output(name_matches) ||
         any_output(type_matches);
}

bool NodeFilter::accepts(const Plan& plan, NodeId n) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& t) { return holds(t, plan, n) != t.negated; });
}

}  // namespace tapedeck::viewer
