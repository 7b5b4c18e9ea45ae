// Last node first, the stages are found in which each node has to run again: the stages of the first readers that must not read
// the first copy, where what runs again there counts as a reader. So a chain of wished values is made again in one go, and each
// node is looked at once. Then the runs are put into a schedule, first node first, which says what each of them does to the
// bytes alive; at last the schedule becomes a graph.
#include <tapedeck/capture/planner/recompute_wished.h>

#include <tapedeck/capture/planner/honour_wishes.h>
#include <tapedeck/capture/planner/region_plans.h>
#include <tapedeck/capture/planner/schedules/decisions.h>
#include <tapedeck/capture/planner/schedules/schedule.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

class WishWriter {
 public:
  WishWriter(const Facts& facts, const std::vector<Wish>& wishes)
      : facts_(facts),
        graph_(*facts.graph),
        wishes_(wishes),
        wished_(find_wished(graph_, wishes)),
        wish_of_root_(graph_.values.size(), kNone),
        root_obstacles_(graph_.values.size()),
        readers_(graph_.values.size()),
        runs_(graph_.nodes.size()),
        schedule_(facts) {
    const std::int64_t n = graph_.node_count();
    most_runs_ = std::max(n, std::min<std::int64_t>(n * n / 2, 4096));
  }

  Recomputed write() {
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (is_to_recompute(v)) wish_of_root_[facts_.windows[v].viewed] = wished_.wish_of[v];
    const std::vector<char> passing = passing_windows(facts_);
    for (NodeId n = graph_.node_count(); n-- > 0;) {
      find_runs(n);
      if (!passing[n]) read(n, n);
    }
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      if (!runs_[n].empty()) run_again(n);
    note_obstacles();
    write_graph();
    return std::move(result_);
  }

 private:
  bool is_to_recompute(ValueId v) const {
    return wished_.wish_of[v] != kNone && wishes_[wished_.wish_of[v]].kind == WishKind::recompute;
  }

  void read(NodeId n, NodeId stage) {
    for (ValueId root : facts_.reads(n))
      if (wish_of_root_[root] != kNone) readers_[root].push_back(stage);
  }

  // ---- where nodes run again ----

  void find_runs(NodeId n) {
    std::vector<NodeId> stages;
    for (ValueId v : facts_.makes(n))
      if (wish_of_root_[v] != kNone && facts_.in_arena(v)) add_runs_for(v, n, &stages);
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
    if (stages.empty()) return;
    if (const std::string obstacle = obstacle_of(n, stages); !obstacle.empty()) {
      for (ValueId v : facts_.makes(n))
        if (wish_of_root_[v] != kNone) root_obstacles_[v] = obstacle;
      return;
    }
    n_runs_ += static_cast<std::int64_t>(stages.size());
    for (NodeId stage : stages) read(n, stage);
    runs_[n] = std::move(stages);
  }

  void add_runs_for(ValueId v, NodeId maker, std::vector<NodeId>* stages) {
    std::sort(readers_[v].begin(), readers_[v].end());
    NodeId last = maker;
    for (NodeId stage : readers_[v]) {
      if (facts_.wishes_apart(last, stage)) stages->push_back(stage);
      last = stage;
    }
  }

  std::string obstacle_of(NodeId n, const std::vector<NodeId>& stages) const {
    if (facts_.fixed_node[n]) return fmt::format("{} has an effect outside of the graph", graph_.nodes[n].op->name);
    if (facts_.is_kept(n)) return "another wish keeps what the same node makes";
    if (n_runs_ + static_cast<std::int64_t>(stages.size()) > most_runs_)
      return fmt::format("all wishes together take more than {} clones", most_runs_);
    for (ValueId root : facts_.reads(n))
      if (!facts_.in_arena(root) && facts_.overwritten[root] < stages.back())
        return fmt::format("state %{}, which it reads, is overwritten by then", graph_.value_name(root));
    return "";
  }

  // ---- the runs ----

  void run_again(NodeId n) {
    Decision d;
    std::int32_t wish = kNone;
    for (ValueId v : facts_.makes(n)) {
      if (wish_of_root_[v] == kNone) continue;
      if (d.value.empty()) d.value = graph_.value_name(v);
      wish = wish_of_root_[v];
      d.bytes += facts_.bytes[v];
      const NodeId stage = runs_[n].front();
      d.span = std::max(d.span, stage - schedule_.presence(v, stage).previous - 1);
    }
    const std::size_t before = schedule_.journal().size();
    for (NodeId stage : runs_[n]) schedule_.add_run(stage, n);
    schedule_.remove_if_unread(n, n);
    schedule_.refresh();
    count_runs(schedule_, before, facts_, &d);
    d.live_peak_bytes = facts_.external_bytes + schedule_.peak().bytes;
    d.reason = fmt::format("wished for by `{}`: computed again before `{}`", wish_text(wishes_[wish]),
                           graph_.node_text(runs_[n].front()));
    result_.decisions.push_back(std::move(d));
  }

  // A clone need not depend on what its original depends on, and still comes after it in every order of the nodes.
  void write_graph() {
    const RunLists runs = runs_after(facts_, schedule_.journal(), schedule_.journal().size());
    result_.cost_us = schedule_cost(facts_, runs) - facts_.keep_all_cost;
    const ClonedGraph cloned = clone_graph(facts_, runs);
    std::vector<NodeId> original(graph_.nodes.size(), kNone);
    Rewriter rewriter(cloned.graph);
    for (NodeId n = 0; n < cloned.graph.node_count(); ++n) {
      const NodeId id = rewriter.copy(n);
      NodeId& first = original[cloned.source[n]];
      if (first == kNone)
        first = n;
      else
        wait_for(rewriter.at(cloned.graph.nodes[first].first_output), id, &rewriter.graph());
    }
    result_.graph = rewriter.finish();
  }

  // REQUIRES: node `id` is the last of the graph: the pool ends with what it waits for.
  static void wait_for(ValueId v, NodeId id, Graph* graph) {
    graph->refs.push_back(v);
    ++graph->nodes[id].n_after;
  }

  // ---- obstacles ----

  void note_obstacles() {
    result_.obstacles.resize(graph_.values.size());
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (is_to_recompute(v)) result_.obstacles[v] = obstacle_of_value(v);
  }

  std::string obstacle_of_value(ValueId v) const {
    const ValueId viewed = facts_.windows[v].viewed;
    const std::string lies = lies_elsewhere(viewed);
    const std::string& obstacle = lies.empty() ? root_obstacles_[viewed] : lies;
    if (obstacle.empty() || viewed == v) return obstacle;
    return fmt::format("it is a view of %{}; {}", graph_.value_name(viewed), obstacle);
  }

  // Inputs, state, constants and results each have a buffer of their own for the whole step, so recomputing them frees no
  // bytes.
  std::string lies_elsewhere(ValueId v) const {
    if (graph_.is_input(v)) return "it is an input";
    if (graph_.is_state(v)) return "it is state";
    if (graph_.literal(graph_.nodes[graph_.values[v].node])) return "it is a constant";
    if (facts_.homes[v].where == Where::state) return "it is written into a state";
    if (facts_.homes[v].where == Where::output) return "it is a result of the graph";
    return "";
  }

  const Facts& facts_;
  const Graph& graph_;
  const std::vector<Wish>& wishes_;
  const WishedValues wished_;
  std::vector<std::int32_t> wish_of_root_;  // by value: the wish to compute it, or a view of it, again
  std::vector<std::string> root_obstacles_;
  std::vector<std::vector<NodeId>> readers_;  // by wished root: the stages that read it
  std::vector<std::vector<NodeId>> runs_;     // by node: the stages in which it runs again
  std::int64_t n_runs_ = 0, most_runs_ = 0;
  Schedule schedule_;
  Recomputed result_;
};

}  // namespace

bool wishes_to_recompute(const std::vector<Wish>& wishes) {
  return std::any_of(wishes.begin(), wishes.end(), [](const Wish& w) { return w.kind == WishKind::recompute; });
}

Recomputed recompute_wished(const Facts& facts, const std::vector<Wish>& wishes) { return WishWriter(facts, wishes).write(); }

Recomputed wished_clones(const Graph& prepared, const PlanOptions& options) {
  Facts facts = collect_facts(prepared, node_workspaces(prepared), options.costs.get(), options.sharing & ~Sharing::parts);
  note_wishes(options.wishes, &facts);
  return recompute_wished(facts, options.wishes);
}

}  // namespace tapedeck
