#include <tapedeck/capture/explain/compare_graphs.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace tapedeck {

namespace {

using Hash = std::uint64_t;

Hash mixed(Hash hash, Hash value) { return (hash ^ value) * 0x9e3779b97f4a7c15ULL ^ hash >> 29; }

class GraphMatch {
 public:
  GraphMatch(const Graph& a, const Graph& b) : a_(a), b_(b) {
    in_b_.assign(static_cast<std::size_t>(a.value_count()), kNone);
    node_in_b_.assign(static_cast<std::size_t>(a.node_count()), kNone);
    taken_.assign(static_cast<std::size_t>(b.node_count()), false);
    found_.nodes_a = a.node_count();
    found_.nodes_b = b.node_count();
    name_nodes(a, &named_a_);
    name_nodes(b, &named_b_);
  }

  GraphComparison compare() {
    match_given("input", 0, a_.n_inputs, 0, b_.n_inputs);
    match_given("state", a_.n_inputs, a_.n_state, b_.n_inputs, b_.n_state);
    by_structure_.reserve(static_cast<std::size_t>(b_.node_count()));
    for (NodeId n = b_.node_count() - 1; n >= 0; --n) by_structure_[structure_in_b(n)].push_back(n);
    for (NodeId n = 0; n < a_.node_count(); ++n) match_node(n);
    for (NodeId n = 0; n < b_.node_count(); ++n)
      if (!taken_[n]) {
        ++found_.only_b;
        found_.differences.push_back({"node", name_of(b_, n), "", b_.node_text(n)});
      }
    compare_outputs();
    compare_updates();
    found_.moved = count_moved();
    return std::move(found_);
  }

  // REQUIRES: compare() was called.
  std::vector<ValueId> take_matched_values() { return std::move(in_b_); }

 private:
  using Names = std::unordered_map<std::string_view, NodeId>;

  static void name_nodes(const Graph& g, Names* names) {
    for (NodeId n = 0; n < g.node_count(); ++n)
      if (const std::string_view name = name_view(g, n); !name.empty()) names->emplace(name, n);
  }
  // Of the first result; empty if it has none of its own.
  static std::string_view name_view(const Graph& g, NodeId n) {
    return g.nodes[n].n_outputs > 0 ? g.values[g.nodes[n].first_output].name.view() : std::string_view();
  }
  static std::string name_of(const Graph& g, NodeId n) {
    return g.nodes[n].n_outputs > 0 ? g.value_name(g.nodes[n].first_output) : g.nodes[n].op->name;
  }
  static NodeId namesake(const Names& names, std::string_view name) {
    const auto it = name.empty() ? names.end() : names.find(name);
    return it == names.end() ? kNone : it->second;
  }

  // ---- inputs and state ----

  void match_given(const char* what, ValueId first_a, std::int32_t count_a, ValueId first_b, std::int32_t count_b) {
    std::unordered_map<std::string_view, ValueId> names;
    for (ValueId v = first_b; v < first_b + count_b; ++v) names.emplace(b_.values[v].name.view(), v);
    for (ValueId v = first_a; v < first_a + count_a; ++v) {
      const auto it = names.find(a_.values[v].name.view());
      const ValueId other = it == names.end() ? kNone : it->second;
      if (other != kNone) names.erase(it);
      in_b_[v] = other;
      const std::string a = to_string(a_.values[v].type), b = other == kNone ? "" : to_string(b_.values[other].type);
      if (a != b) found_.differences.push_back({what, a_.value_name(v), a, b});
    }
    for (ValueId v = first_b; v < first_b + count_b; ++v)
      if (names.count(b_.values[v].name.view()) > 0)
        found_.differences.push_back({what, b_.value_name(v), "", to_string(b_.values[v].type)});
  }

  // ---- nodes ----

  Hash structure_in_b(NodeId n) const {
    const Node& node = b_.nodes[n];
    Hash hash = mixed(static_cast<Hash>(node.op->id), hash_attributes(b_, node));
    for (const ValueId v : b_.inputs(node)) hash = mixed(hash, static_cast<Hash>(v));
    return hash;
  }
  // As structure_in_b() of the node that it would be there; empty if an operand has no match.
  std::optional<Hash> structure_from_a(NodeId n) const {
    const Node& node = a_.nodes[n];
    Hash hash = mixed(static_cast<Hash>(node.op->id), hash_attributes(a_, node));
    for (const ValueId v : a_.inputs(node)) {
      if (in_b_[v] == kNone) return std::nullopt;
      hash = mixed(hash, static_cast<Hash>(in_b_[v]));
    }
    return hash;
  }

  bool same_but_for_operands(NodeId in_a, NodeId in_b) const {
    const Node &x = a_.nodes[in_a], &y = b_.nodes[in_b];
    return x.op == y.op && x.n_inputs == y.n_inputs && a_.output_types(x) == b_.output_types(y) &&
           same_attributes(a_, x, b_, y);
  }
  bool same_node(NodeId in_a, NodeId in_b) const {
    if (!same_but_for_operands(in_a, in_b)) return false;
    const std::span<const ValueId> x = a_.inputs(a_.nodes[in_a]), y = b_.inputs(b_.nodes[in_b]);
    return std::equal(x.begin(), x.end(), y.begin(), [&](ValueId v, ValueId w) { return in_b_[v] == w; });
  }
  // Before the operands are matched.
  bool same_by_names(NodeId in_a, NodeId in_b) const {
    if (!same_but_for_operands(in_a, in_b)) return false;
    const std::span<const ValueId> x = a_.inputs(a_.nodes[in_a]), y = b_.inputs(b_.nodes[in_b]);
    return std::equal(x.begin(), x.end(), y.begin(),
                      [&](ValueId v, ValueId w) { return a_.value_name(v) == b_.value_name(w); });
  }

  // A free node of B with the same structure, unless a node of A with its name is its better match.
  NodeId structural_match(NodeId n) {
    const std::optional<Hash> hash = structure_from_a(n);
    const auto it = hash ? by_structure_.find(*hash) : by_structure_.end();
    if (it == by_structure_.end()) return kNone;
    std::vector<NodeId>& candidates = it->second;
    while (!candidates.empty() && taken_[candidates.back()]) candidates.pop_back();  // else equal nodes cost their square
    for (std::size_t i = candidates.size(); i-- > 0;) {
      const NodeId candidate = candidates[i];
      if (taken_[candidate] || !same_node(n, candidate)) continue;
      const NodeId rival = namesake(named_a_, name_view(b_, candidate));
      if (rival == kNone || rival == n || node_in_b_[rival] != kNone || !same_by_names(rival, candidate)) return candidate;
    }
    return kNone;
  }

  void match_node(NodeId n) {
    const NodeId named = namesake(named_b_, name_view(a_, n));
    if (named != kNone && !taken_[named] && same_node(n, named)) return pair_equal(n, named);
    if (const NodeId other = structural_match(n); other != kNone) return pair_equal(n, other);
    if (named != kNone && !taken_[named]) {
      pair(n, named);
      ++found_.changed;
      found_.differences.push_back({"node", name_of(a_, n), a_.node_text(n), b_.node_text(named)});
      return;
    }
    ++found_.only_a;
    found_.differences.push_back({"node", name_of(a_, n), a_.node_text(n), ""});
  }

  void pair_equal(NodeId in_a, NodeId in_b) {
    pair(in_a, in_b);
    // Numbers shift; they are no names.
    if (name_view(a_, in_a) == name_view(b_, in_b))
      ++found_.same;
    else
      found_.renamed.emplace_back(name_of(a_, in_a), name_of(b_, in_b));
  }

  void pair(NodeId in_a, NodeId in_b) {
    taken_[in_b] = true;
    node_in_b_[in_a] = in_b;
    const Node &x = a_.nodes[in_a], &y = b_.nodes[in_b];
    for (std::int32_t i = 0; i < std::min(x.n_outputs, y.n_outputs); ++i) in_b_[x.first_output + i] = y.first_output + i;
  }

  // ---- results ----

  // "loss=%mean", or "%loss" if the output has the name of its value.
  static std::string output_text(const Graph& g, std::size_t i) {
    if (i >= g.outputs.size()) return "";
    const std::string value = g.value_name(g.outputs[i]);
    const bool named = i < g.output_names.size() && !g.output_names[i].empty() && g.output_names[i].view() != value;
    return (named ? g.output_names[i].str() + "=" : std::string()) + "%" + value;
  }

  void compare_outputs() {
    for (std::size_t i = 0; i < std::max(a_.outputs.size(), b_.outputs.size()); ++i) {
      const std::string a = output_text(a_, i), b = output_text(b_, i);
      const bool matched = i < a_.outputs.size() && i < b_.outputs.size() && in_b_[a_.outputs[i]] == b_.outputs[i];
      const bool same_name = a.substr(0, a.find('%')) == b.substr(0, b.find('%'));
      if (!matched || !same_name) found_.differences.push_back({"output", std::to_string(i), a, b});
    }
  }

  void compare_updates() {
    std::unordered_map<std::string_view, ValueId> names;
    for (const Update& u : b_.updates) names.emplace(b_.values[u.state].name.view(), u.value);
    for (const Update& u : a_.updates) {
      const auto it = names.find(a_.values[u.state].name.view());
      const ValueId other = it == names.end() ? kNone : it->second;
      if (other != kNone) names.erase(it);
      if (other == kNone || in_b_[u.value] != other)
        found_.differences.push_back(
            {"update", a_.value_name(u.state), "%" + a_.value_name(u.value), other == kNone ? "" : "%" + b_.value_name(other)});
    }
    for (const Update& u : b_.updates)
      if (names.count(b_.values[u.state].name.view()) > 0)
        found_.differences.push_back({"update", b_.value_name(u.state), "", "%" + b_.value_name(u.value)});
  }

  // All matched nodes but the longest ascending run of their numbers in B.
  std::int32_t count_moved() const {
    std::vector<NodeId> ends;  // by length: the least last number of an ascending run
    std::int32_t matched = 0;
    for (const NodeId n : node_in_b_) {
      if (n == kNone) continue;
      ++matched;
      const auto at = std::lower_bound(ends.begin(), ends.end(), n);
      at == ends.end() ? ends.push_back(n) : void(*at = n);
    }
    return matched - static_cast<std::int32_t>(ends.size());
  }

  const Graph &a_, &b_;
  GraphComparison found_;
  Names named_a_, named_b_;
  std::vector<ValueId> in_b_;                                   // by value of A: its match
  std::vector<NodeId> node_in_b_;                               // by node of A
  std::vector<bool> taken_;                                     // by node of B
  std::unordered_map<Hash, std::vector<NodeId>> by_structure_;  // nodes of B, the last first
};

}  // namespace

GraphComparison compare_graphs(const Graph& a, const Graph& b) { return GraphMatch(a, b).compare(); }

std::vector<ValueId> matched_values(const Graph& a, const Graph& b) {
  GraphMatch match(a, b);
  match.compare();
  return match.take_matched_values();
}

}  // namespace tapedeck
