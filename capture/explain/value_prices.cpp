// The price with all others fixed is read off a graph with one change. For a value that is kept:
//
//     %h = relu(%x); %y = exp(%h); ... ; %d = mul(%g, %h)
//     %h = relu(%x); %y = exp(%h); ... ; %c = relu(%x) [clone]; %d = mul(%g, %c)
//
// and back for one that is made again. The changed graph is planned without a strategy, in the order in which its nodes stand.
#include <tapedeck/capture/explain/value_prices.h>

#include <tapedeck/capture/explain/recompute_cost.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/op.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tapedeck {

namespace {

// Removes the order edges, because the order is given, and the marks of the program, because the plan has honoured them.
Graph without_edges_and_marks(const Graph& graph) {
  Graph plain = without_marks(graph);
  for (Node& node : plain.nodes) node.n_after = 0;
  return plain;
}

// By node: nobody reads a result of it, or only nodes like it do.
std::vector<char> dead_nodes(const Graph& graph) {
  std::vector<char> used(graph.values.size(), 0), dead(graph.nodes.size(), 0);
  for (const ValueId v : graph.outputs) used[v] = 1;
  for (const Update& u : graph.updates) used[u.value] = 1;
  for (NodeId n = graph.node_count(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    dead[n] = node.n_outputs > 0 && !node.op->is(kEffect);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (used[v]) dead[n] = 0;
    if (dead[n]) continue;
    for (const ValueId v : graph.inputs(node)) used[v] = 1;
  }
  return dead;
}

// The nodes of the plan with one change.
class OneChange {
 public:
  explicit OneChange(const Plan& plan) : plan_(plan), g_(without_edges_and_marks(plan.graph)), rewriter_(g_) {}

  // One run of the nodes that make the entry. Its other runs, and what ran for these alone, are left out.
  void keep(const ValueEntry& entry) {
    const Node& first = g_.nodes[entry.first_maker()];
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (n == entry.first_maker() || !std::binary_search(entry.runs.begin(), entry.runs.end(), n)) {
        copy(n);
        continue;
      }
      dropped_.push_back(n);
      for (std::int32_t i = 0; i < first.n_outputs; ++i)
        rewriter_.replace(g_.nodes[n].first_output + i, rewriter_.at(first.first_output + i));
    }
    finish();
  }

  // `again` run once more just before the node `before`, which reads their `value`.
  void make_again(ValueId value, const std::vector<NodeId>& again, NodeId before) {
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (n != before) {
        copy(n);
        continue;
      }
      for (const NodeId maker : again) clone(maker);
      copy_reader(n, value);
    }
    finish();
  }

  const Graph& graph() const { return result_; }
  const std::vector<NodeId>& dropped() const { return dropped_; }  // nodes of the plan
  std::int32_t added() const { return added_; }                    // clones, those of views too

 private:
  void copy(NodeId n) {
    rewriter_.copy(n);
    source_.push_back(n);
  }

  void clone(NodeId n) {
    std::vector<ValueId> operands;
    for (const ValueId v : g_.inputs(g_.nodes[n])) operands.push_back(again_or_first(v));
    write_clone(n, operands);
  }

  // REQUIRES: what the view looks at has been made again.
  void clone_view(NodeId n) {
    std::vector<ValueId> operands;
    for (const ValueId v : g_.inputs(g_.nodes[n])) operands.push_back(latest(v));
    write_clone(n, operands);
  }

  ValueId latest(ValueId v) const {
    const auto found = again_.find(v);
    return found == again_.end() ? rewriter_.at(v) : found->second;
  }

  void write_clone(NodeId n, const std::vector<ValueId>& operands) {
    const NodeId id = rewriter_.clone(n, operands, {});
    source_.push_back(kNone);
    const ValueId first = rewriter_.graph().nodes[id].first_output;
    for (std::int32_t i = 0; i < g_.nodes[n].n_outputs; ++i) again_[g_.nodes[n].first_output + i] = first + i;
  }

  // The views between v and a value that is made again are made again, the innermost first.
  ValueId again_or_first(ValueId v) {
    std::vector<ValueId> views;
    while (!again_.count(v) && plan_.values[v].reason == Reason::alias) {
      views.push_back(v);
      v = plan_.values[v].other;
    }
    if (again_.count(v))
      for (auto view = views.rbegin(); view != views.rend(); ++view) clone_view(g_.values[*view].node);
    return latest(views.empty() ? v : views.front());
  }

  void copy_reader(NodeId n, ValueId value) {
    std::vector<std::pair<ValueId, ValueId>> firsts;
    for (const ValueId v : g_.inputs(g_.nodes[n])) {
      if (behind_views(v) != value) continue;
      const ValueId again = again_or_first(v);
      firsts.emplace_back(v, rewriter_.at(v));
      rewriter_.replace(v, again);
    }
    copy(n);
    for (auto it = firsts.rbegin(); it != firsts.rend(); ++it) rewriter_.replace(it->first, it->second);
  }

  ValueId behind_views(ValueId v) const {
    while (plan_.values[v].reason == Reason::alias) v = plan_.values[v].other;
    return v;
  }

  // Leaves out the nodes that nobody reads any more.
  void finish() {
    const Graph changed = rewriter_.finish();
    const std::vector<char> dead = dead_nodes(changed), dead_before = dead_nodes(g_);
    Rewriter rewriter(changed);
    for (NodeId n = 0; n < changed.node_count(); ++n) {
      if (dead[n] && (source_[n] == kNone || !dead_before[source_[n]]))
        drop(n);
      else
        rewriter.copy(n), added_ += source_[n] == kNone;
    }
    result_ = rewriter.finish();
  }

  void drop(NodeId n) {
    if (source_[n] != kNone) dropped_.push_back(source_[n]);
  }

  const Plan& plan_;
  const Graph g_;
  Rewriter rewriter_;
  std::vector<NodeId> source_;                  // by node of the changed graph; kNone: it is one more run
  std::unordered_map<ValueId, ValueId> again_;  // what was made again
  std::vector<NodeId> dropped_;
  std::int32_t added_ = 0;
  Graph result_;
};

// By node: microseconds of its run.
std::vector<double> run_costs(const Plan& plan, const std::vector<ValueEntry>& log) {
  std::vector<double> us(plan.graph.nodes.size(), 0);
  for (const ValueEntry& e : log)
    for (const NodeId n : e.runs) us[n] = e.us;
  return us;
}

PlanOptions as_it_stands(const PlanOptions& options) {
  PlanOptions how = options;
  how.strategy = Strategy::none;
  how.ordering = Ordering::recorded;
  how.level = OptimizationLevel::none;
  how.wishes.clear();
  how.budget = -1;
  how.budget_percent = -1;
  how.threads = 1;
  how.near = nullptr;
  how.find_floor = false;
  how.progress = {};
  return how;
}

std::string obstacle_of(const ValueEntry& entry) {
  if (entry.choice == ValueChoice::elsewhere) return entry.rule;
  return entry.readers.empty() ? "nobody reads it" : "";
}

void measure(const Plan& plan, const std::vector<ValueEntry>& log, const OneChange& change, const PlanOptions& options,
             ValuePrice* price) {
  const std::vector<double> us = run_costs(plan, log);
  price->cost_us = plan.cost_us;
  for (const NodeId n : price->nodes) price->cost_us += us[n];
  for (const NodeId n : change.dropped()) price->cost_us -= us[n];
  price->recomputed_nodes = plan.recomputed_nodes + change.added() - static_cast<std::int32_t>(change.dropped().size());
  const Plan changed = make_plan(change.graph(), as_it_stands(options));
  price->live_peak_bytes = changed.lower_bound_bytes;
  price->peak_bytes = changed.peak_bytes;
  price->feasible = plan.budget_bytes < 0 || changed.peak_bytes <= plan.budget_bytes;
}

std::string difference(const ValuePrice& price, const Plan& plan) {
  return fmt::format("live peak {} ({:+}), peak {} ({:+}), cost {:.1f} us ({:+.1f}){}\n", price.live_peak_bytes,
                     price.live_peak_bytes - plan.lower_bound_bytes, price.peak_bytes, price.peak_bytes - plan.peak_bytes,
                     price.cost_us, price.cost_us - plan.cost_us, price.feasible ? "" : "; the budget cannot be met");
}

std::string alone_text(const Plan& plan, const ValuePrice& price) {
  if (!price.obstacle.empty()) return fmt::format("  the other choice: there is none: {}\n", price.obstacle);
  const std::string what = price.before == kNone
                               ? "kept from its first run on"
                               : fmt::format("made again before node {} (node{} {})", price.before,
                                             price.nodes.size() == 1 ? "" : "s", fmt::join(price.nodes, ", "));
  return fmt::format("  the other choice, all others fixed: {}\n      {}", what, difference(price, plan));
}

std::string anew_text(const Plan& plan, const ValuePrice& price) {
  if (!price.obstacle.empty()) return fmt::format("  planned anew: not possible: {}\n", price.obstacle);
  return fmt::format("  planned anew with {}: {} nodes recomputed\n      {}", wish_text(price.wish), price.recomputed_nodes,
                     difference(price, plan));
}

std::string copies_text(const Plan& plan, const ValueEntry& e) {
  std::string text;
  for (std::size_t i = 0; i < e.runs.size(); ++i)
    text +=
        fmt::format("    {} node {}: %{}\n", i == 0 ? "made by" : "again by", e.runs[i], plan.graph.value_name(e.copies[i]));
  for (const NodeId n : e.readers) text += fmt::format("    read by node {}: {}\n", n, plan.graph.node_text(n));
  return text;
}

}  // namespace

ValuePrice price_alone(const Plan& plan, const std::vector<ValueEntry>& log, const ValueEntry& entry,
                       const PlanOptions& options) {
  ValuePrice price;
  price.obstacle = obstacle_of(entry);
  if (!price.obstacle.empty()) return price;
  OneChange change(plan);
  if (entry.choice == ValueChoice::recomputed) {
    change.keep(entry);
  } else {
    const ValueId v = entry.copies.front();
    const Reruns reruns(plan);
    price.before = reruns.readers(v).back();
    const Rerun rerun = reruns.find(v, entry.first_maker(), price.before);
    price.obstacle = rerun.obstacle;
    if (rerun.nodes.empty()) return price;
    price.nodes = rerun.nodes;
    change.make_again(v, rerun.nodes, price.before);
  }
  measure(plan, log, change, options, &price);
  return price;
}

ValuePrice other_wish(const ValueEntry& entry) {
  ValuePrice price;
  price.wish = {entry.choice == ValueChoice::recomputed ? WishKind::keep : WishKind::recompute, entry.name};
  price.obstacle = obstacle_of(entry);
  if (price.obstacle.empty() && entry.name.find_first_of("*?:") != std::string::npos)
    price.obstacle = "a wish cannot name it: its name is a pattern";
  return price;
}

void take_numbers(const Plan& anew, ValuePrice* price) {
  price->feasible = anew.feasible;
  price->live_peak_bytes = anew.lower_bound_bytes;
  price->peak_bytes = anew.peak_bytes;
  price->floor_bytes = anew.floor_bytes;
  price->cost_us = anew.cost_us;
  price->recomputed_nodes = anew.recomputed_nodes;
}

ValuePrice price_anew(const Graph& captured, const Plan& plan, const ValueEntry& entry, const PlanOptions& options) {
  ValuePrice price = other_wish(entry);
  if (!price.obstacle.empty()) return price;
  PlanOptions how = options;
  how.wishes.push_back(price.wish);
  how.budget = plan.budget_bytes;
  how.budget_percent = -1;
  how.progress = {};
  take_numbers(make_plan(captured, how), &price);
  return price;
}

std::string value_text(const Plan& plan, const ValueEntry& e, const ValuePrice* alone, const ValuePrice* anew) {
  std::string text = fmt::format("%{}: {}, {} bytes, {}\n  {}\n", e.name, e.type, e.bytes, value_choice_name(e.choice), e.rule);
  if (!e.runs.empty())
    text += fmt::format("  its maker runs {} time{}, {:.1f} us each\n", e.runs.size(), e.runs.size() == 1 ? "" : "s", e.us);
  text += copies_text(plan, e);
  if (alone) text += alone_text(plan, *alone);
  if (anew && (!alone || anew->obstacle != alone->obstacle || anew->obstacle.empty())) text += anew_text(plan, *anew);
  return text;
}

}  // namespace tapedeck
