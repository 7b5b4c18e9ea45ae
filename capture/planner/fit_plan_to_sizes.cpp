// Fits the placements of a plan to smaller sizes (Fitter), and proves that the planned graph is the captured graph at all
// sizes, not only at the largest sizes, for which it was planned (Matcher).
//
//     planned at n = 64                       at n = 16
//     %a: f32[64] at 0, 256 bytes             %a: f32[16] at 0, 64 bytes: the same offset, fewer bytes
//     %c = concat(%a, %b), %b at 256          %b is a part and moves with the whole: offset 64
#include <tapedeck/capture/planner/fit_plan_to_sizes.h>

#include <tapedeck/capture/analysis/alias.h>
#include <tapedeck/capture/analysis/parts.h>
#include <tapedeck/capture/analysis/same_program.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/planner/region_plans.h>
#include <tapedeck/engine/ir/compare_nodes.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace tapedeck {

// ---- placements ----

namespace {

class Fitter {
 public:
  Fitter(const Plan& from, Graph graph) : from_(from), plan_(from) {
    plan_.graph = std::move(graph);
    plan_regions(&plan_);  // at the new sizes
  }

  bool fit(std::string* why) {
    if (!fit_parts(why)) return false;
    for (ValueId v = 0; v < g().value_count(); ++v)
      if (plan_.values[v].reason != Reason::part && !fit_value(v, why)) return false;
    for (NodeId n = 0; n < g().node_count(); ++n)
      if (!fit_workspace(n, why)) return false;
    fit_slots();
    fit_figures();
    return true;
  }

  Plan take() { return std::move(plan_); }

 private:
  const Graph& g() const { return plan_.graph; }
  const Type& type(ValueId v) const { return g().values[v].type; }
  const Type& was(ValueId v) const { return from_.graph.values[v].type; }

  bool fit_value(ValueId v, std::string* why) {
    Placement& p = plan_.values[v];
    if (p.reason == Reason::alias) return fit_window(v, why);
    if (type(v).bytes() > was(v).bytes()) {
      *why = fmt::format("%{} is {}, larger than {} in the plan", g().value_name(v), to_string(type(v)), to_string(was(v)));
      return false;
    }
    dense_strides(type(v).shape, p.strides);
    return true;
  }

  bool fit_window(ValueId v, std::string* why) {
    Placement& p = plan_.values[v];
    const Placement& base = plan_.values[p.other];
    const Node& node = g().nodes[g().values[v].node];
    std::int64_t offset = 0, strides[kMaxRank] = {};
    if (!node.op->view || !node.op->view(type(p.other), base.strides, g().attributes(node), type(v), &offset, strides)) {
      *why = fmt::format("%{} is a window that strides no longer express at {}", g().value_name(v), to_string(type(v)));
      return false;
    }
    const bool empty = type(v).numel() == 0;
    p.offset = base.offset + (empty ? 0 : offset * static_cast<std::int64_t>(dtype_size(type(v).dtype)));
    p.dense = is_dense(type(v).shape, strides);
    if (p.dense)
      dense_strides(type(v).shape, p.strides);
    else
      std::copy_n(strides, kMaxRank, p.strides);
    return true;
  }

  // Gives every part the place that the smaller whole has for it. It goes from the last join back, so that the place of a
  // whole is known before the places of its parts.
  bool fit_parts(std::string* why) {
    std::vector<char> fitted(g().values.size(), 0);
    for (NodeId n = g().node_count(); n-- > 0;)
      if (g().nodes[n].op->part && g().nodes[n].n_outputs == 1) fit_parts_of(g().nodes[n], &fitted);
    for (ValueId v = 0; v < g().value_count(); ++v)
      if (plan_.values[v].reason == Reason::part && !fitted[v]) {
        *why = fmt::format("%{} is a part that strides no longer express at {}", g().value_name(v), to_string(type(v)));
        return false;
      }
    return true;
  }

  void fit_parts_of(const Node& joiner, std::vector<char>* fitted) {
    const ValueId result = joiner.first_output;
    const Placement& whole = plan_.values[result];
    Window place, around = own_bytes_of(g(), result);
    around.offset = whole.offset;
    if (whole.reason == Reason::part) std::copy_n(whole.strides, kMaxRank, around.strides);
    const std::vector<std::int64_t> offsets = part_offsets(g(), joiner, around.strides);
    for (int i = 0; i < joiner.n_inputs; ++i) {
      const ValueId shown = shown_by(g().inputs(joiner)[i]);
      Placement& p = plan_.values[shown];
      if (p.reason != Reason::part || p.other != result || (*fitted)[shown]) continue;
      if (!place_part(g(), joiner, i, offsets[i], around, shown, &place)) continue;
      p.offset = place.offset;
      p.dense = place.dense;
      std::copy_n(place.strides, kMaxRank, p.strides);
      (*fitted)[shown] = 1;
    }
  }

  ValueId shown_by(ValueId v) const {
    while (plan_.values[v].reason == Reason::alias) v = plan_.values[v].other;
    return v;
  }

  bool fit_workspace(NodeId n, std::string* why) {
    Scratch& scratch = plan_.workspace[n];
    const std::int64_t needed = needed_workspace(plan_, n);
    if (needed > scratch.bytes) {
      *why = fmt::format("`{}` needs {} bytes of workspace, the plan has {}", g().node_text(n), needed, scratch.bytes);
      return false;
    }
    scratch.bytes = needed;
    return true;
  }

  void fit_slots() {
    for (ValueId v = 0; v < g().value_count(); ++v) {
      const Placement& p = plan_.values[v];
      if (p.where == Where::output && p.reason != Reason::alias && p.reason != Reason::part)
        plan_.output_slots[p.slot] = type(v);
    }
  }

  void fit_figures() {
    std::int64_t external = 0;
    for (ValueId v = 0; v < g().n_inputs + g().n_state; ++v) external += type(v).bytes();
    std::vector<char> used(g().constants.size(), 0);
    for (const Placement& p : plan_.values)
      if (p.where == Where::constant && p.reason != Reason::alias && !std::exchange(used[p.slot], 1))
        external += g().constants[p.slot].type.bytes();
    for (const Type& slot : plan_.output_slots) external += slot.bytes();
    plan_.external_bytes = external;
    plan_.peak_bytes = external + plan_.arena_bytes;
    // The chunks stay. A value that filled a chunk larger than the others may be smaller now, so the bound becomes the largest
    // chunk.
    if (!plan_.chunks.empty())
      plan_.chunk_bytes = std::max(plan_.chunk_bytes, *std::max_element(plan_.chunks.begin(), plan_.chunks.end()));
    const std::vector<std::int64_t> live = live_bytes(plan_);
    plan_.lower_bound_bytes = live.empty() ? external : *std::max_element(live.begin(), live.end());
    // Nobody looked for the floor at these sizes. It is at most the peak of this plan.
    plan_.floor_bytes = std::min(plan_.floor_bytes, plan_.peak_bytes);
  }

  const Plan& from_;
  Plan plan_;
};

}  // namespace

std::optional<Plan> fit_plan(const Plan& plan, Graph graph, std::string* why) {
  Fitter fitter(plan, std::move(graph));
  if (!fitter.fit(why)) return std::nullopt;
  return fitter.take();
}

// ---- is the planned graph the captured one at every size? ----

namespace {

// By value of the captured graph: a number. Values with equal numbers are equal at every size.
std::vector<std::int32_t> classes_of(const Graph& g, const DimTable& table) {
  std::unordered_map<std::string, std::string> rules;  // by node
  for (const DimTable::Entry& e : table.entries) {
    const std::string node = e.node.substr(0, e.node.find('/'));
    rules[node] += fmt::format("{}|{}|{}|{};", e.node.substr(node.size()), e.field, e.element, rule_text(table, e.rule));
  }
  std::vector<std::int32_t> classes(g.values.size());
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) classes[v] = v;
  std::unordered_map<std::string, std::vector<NodeId>> seen;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    for (std::int32_t i = 0; i < node.n_outputs; ++i) classes[node.first_output + i] = node.first_output + i;
    if (node.op->is(kEffect | kDeclaredTypes) && !g.literal(node)) continue;
    if (node.op->is(kCopy)) {
      classes[node.first_output] = classes[g.inputs(node)[0]];
      continue;
    }
    std::string key = fmt::format("{}:{}:", node.op->name, hash_attributes(g, node));
    for (ValueId v : g.inputs(node)) key += fmt::format("{},", classes[v]);
    if (node.n_outputs > 0)
      if (const auto it = rules.find(g.value_name(node.first_output)); it != rules.end()) key += it->second;
    std::vector<NodeId>& alike = seen[key];
    const auto twin =
        std::find_if(alike.begin(), alike.end(), [&](NodeId m) { return same_attributes(g, g.nodes[m], g, node); });
    if (twin == alike.end()) {
      alike.push_back(n);
      continue;
    }
    const ValueId first = g.nodes[*twin].first_output;
    for (std::int32_t i = 0; i < node.n_outputs; ++i) classes[node.first_output + i] = first + i;
  }
  return classes;
}

class Matcher {
 public:
  Matcher(const Graph& captured, const DimTable& table, const Graph& largest, const Graph& planned)
      : captured_(captured), largest_(largest), planned_(planned), classes_(classes_of(captured, table)) {
    for (NodeId n = 0; n < captured.node_count(); ++n) {
      const Node& node = captured.nodes[n];
      if (node.n_outputs > 0 && !captured.values[node.first_output].name.empty())
        by_name_.emplace(captured.value_name(node.first_output), n);
    }
    const auto clones = std::count_if(planned.nodes.begin(), planned.nodes.end(), [](const Node& n) { return n.origin.clone; });
    in_order_ = planned.node_count() - clones == captured.node_count();
  }

  std::string match(std::vector<NodeId>* source) {
    if (planned_.n_inputs != captured_.n_inputs || planned_.n_state != captured_.n_state)
      return "the plan has other inputs or state";
    planned_classes_.assign(planned_.values.size(), kNone);
    for (ValueId v = 0; v < planned_.n_inputs + planned_.n_state; ++v) planned_classes_[v] = classes_[v];
    for (NodeId n = 0; n < planned_.node_count(); ++n) {
      std::string wrong = match_node(n, source);
      if (!wrong.empty()) return wrong;
    }
    return match_results();
  }

 private:
  std::string match_node(NodeId n, std::vector<NodeId>* source) {
    const Node& node = planned_.nodes[n];
    if (node.n_outputs == 0) return fmt::format("`{}` has no result to know it by", planned_.node_text(n));
    const NodeId c = counterpart(node);
    std::string merged;
    if (c == kNone || !is_node(c, n, &merged)) {
      if (!node.op->is(kCopy)) return fmt::format("`{}` was made by a pass at the largest size", planned_.node_text(n));
      source->push_back(kNone);
      planned_classes_[node.first_output] = planned_classes_[planned_.inputs(node)[0]];
      return "";
    }
    if (!merged.empty()) return merged;
    const Node& twin = captured_.nodes[c];
    source->push_back(c);
    for (std::int32_t i = 0; i < node.n_outputs; ++i) planned_classes_[node.first_output + i] = classes_[twin.first_output + i];
    return "";
  }

  // Whether planned node n is node c of the largest graph. `merged` says which of its operands equals the captured one at the
  // largest size only.
  bool is_node(NodeId c, NodeId n, std::string* merged) {
    using Kind = ProgramDifference::Kind;
    const ProgramSide sides[] = {{&largest_, c, classes_}, {&planned_, n, planned_classes_}};
    return same_node(sides, [&](const ProgramDifference& d) {
      if (d.kind == Kind::region) return is_planned_region(d);
      if (d.kind == Kind::operand && merged->empty())
        *merged = fmt::format("a pass merged operand {} of `{}` with what equals it at the largest size only", d.index,
                              planned_.node_text(n));
      return d.kind == Kind::operand || d.kind == Kind::operand_type || d.kind == Kind::result_type;
    });
  }

  // The regions of a planned graph are those of their plans.
  bool is_planned_region(const ProgramDifference& d) {
    if (!largest_planned_) largest_planned_ = with_planned_regions(largest_);
    const Node &node = largest_planned_->nodes[d.first().id], &planned = d.second().node();
    return same_region(*largest_planned_->regions_of(node)[d.index], *planned_.regions_of(planned)[d.index]);
  }

  // The node of the captured graph, found by name. Nodes that passes made have no name; if the passes ran on the captured graph
  // already, planning keeps its nodes in order.
  NodeId counterpart(const Node& node) {
    if (!node.origin.clone) ++originals_;
    const Name name = node.origin.clone && !node.origin.of.empty() ? node.origin.of : planned_.values[node.first_output].name;
    if (const auto it = name.empty() ? by_name_.end() : by_name_.find(name.str()); it != by_name_.end()) return it->second;
    return in_order_ && !node.origin.clone ? originals_ - 1 : kNone;
  }

  bool equal(ValueId planned, ValueId captured) const { return planned_classes_[planned] == classes_[captured]; }

  std::string match_results() const {
    if (planned_.outputs.size() != captured_.outputs.size()) return "the plan returns other results";
    for (std::size_t i = 0; i < captured_.outputs.size(); ++i)
      if (!equal(planned_.outputs[i], captured_.outputs[i])) return fmt::format("result {} is another in the plan", i);
    std::unordered_map<ValueId, ValueId> stored;
    for (const Update& u : captured_.updates)
      if (u.state != u.value) stored[u.state] = u.value;
    if (planned_.updates.size() != stored.size()) return "the plan updates other state";
    for (const Update& u : planned_.updates)
      if (!stored.count(u.state) || !equal(u.value, stored[u.state]))
        return fmt::format("the plan stores another value in %{}", planned_.value_name(u.state));
    return "";
  }

  const Graph &captured_, &largest_, &planned_;
  std::optional<Graph> largest_planned_;       // with planned regions; made when it is first asked for
  std::vector<std::int32_t> classes_;          // by value of the captured graph and of the largest, which number values alike
  std::vector<std::int32_t> planned_classes_;  // by planned value: the class of the captured value it holds
  std::unordered_map<std::string, NodeId> by_name_;
  NodeId originals_ = 0;   // nodes of the planned graph so far that are no clones
  bool in_order_ = false;  // the planned graph has as many such nodes as the captured graph has nodes
};

}  // namespace

Refit::Refit(const Graph& captured, const DimTable& table, const Graph& largest, const Plan& plan) : plan_(plan) {
  obstacle_ = Matcher(captured, table, largest, plan.graph).match(&source_);
}

Graph Refit::planned_graph(const Graph& at) const {
  Graph g = plan_.graph;
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) g.values[v].type = at.values[v].type;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    const NodeId c = source_[n];
    if (c == kNone) {
      g.values[node.first_output].type = g.values[g.inputs(node)[0]].type;
      continue;
    }
    const Node& twin = at.nodes[c];
    if (const Literal* literal = g.literal(node))  // passes number constants anew
      g.constants[literal - g.constants.data()] = *at.literal(twin);
    else if (node.attrs != kNone)
      std::memcpy(GraphAccess::attributes(g, node), at.attributes(twin), node.op->attrs->size);
    for (std::int32_t i = 0; i < node.n_outputs; ++i)
      g.values[node.first_output + i].type = at.values[twin.first_output + i].type;
    for (std::int32_t r = 0; r < node.n_regions; ++r) g.regions[node.first_region + r] = at.regions_of(twin)[r];
  }
  return g;
}

}  // namespace tapedeck
