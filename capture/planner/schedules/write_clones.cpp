// The graph that a schedule with clones stands for. Nodes keep their order; readers read the copy of a value made last.
//     %h = relu(%x); %y = exp(%h); ... ; %d = mul(%g, %h)
// with relu run again in mul's stage becomes
//     %h = relu(%x); %y = exp(%h); ... ; %9 = relu(%x) [clone, of=%h, after=[..]]; %d = mul(%g, %9)
// and were it not for exp, relu would run in mul's stage only, and be the relu of this graph:
//     ... ; %h = relu(%x) [after=[..]]; %d = mul(%g, %h)
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

// By node: a window that is read only where what it looks at has been made again since; it is first made there.
std::vector<char> late_windows(const Facts& facts, const RunLists& runs) {
  const Graph& graph = *facts.graph;
  std::vector<char> late = passing_windows(facts);
  std::vector<std::int32_t> copies(graph.values.size(), 0),
      seen(graph.values.size(), 0);  // so far; by window: of what it views, in its stage
  const auto read = [&](ValueId v) {
    for (; facts.windows[v].viewed != v; v = graph.inputs(graph.nodes[graph.values[v].node])[0])
      if (seen[v] == copies[facts.windows[v].viewed]) late[graph.values[v].node] = 0;
  };
  for (NodeId stage = 0; stage < graph.node_count(); ++stage) {
    for (NodeId n : runs[stage]) {
      const Node& node = graph.nodes[n];
      if (facts.is_window(n)) seen[node.first_output] = copies[facts.windows[node.first_output].viewed];
      if (late[n]) continue;  // its readers read for it
      for (ValueId v : graph.inputs(node)) read(v);
      for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) ++copies[v];
    }
  }
  return late;
}

class CloneWriter {
 public:
  CloneWriter(const Facts& facts, const RunLists& runs)
      : facts_(facts),
        from_(*facts.graph),
        runs_(runs),
        late_window_(late_windows(facts, runs)),
        rewriter_(from_),
        original_(from_.values.size(), kNone),
        window_on_(from_.values.size(), kNone),
        is_written_(from_.nodes.size(), 0) {}

  ClonedGraph write() {
    for (stage_ = 0; stage_ < from_.node_count(); ++stage_) {
      before_stage_ = last_value_;
      for (NodeId node : runs_[stage_])
        if (!late_window_[node]) write_run(node);
    }
    for (ValueId v = from_.n_inputs + from_.n_state; v < from_.value_count(); ++v) rewriter_.replace(v, original_[v]);
    result_.graph = rewriter_.finish();
    return std::move(result_);
  }

 private:
  // A node that is being written, and the number of its operand that comes next.
  struct Begun {
    NodeId node = kNone;
    std::size_t next = 0;
  };

  // Operands that are views of values made again since are made again first. Views of views may be as many as the nodes of the
  // graph, so the nodes begun are a list.
  void write_run(NodeId node) {
    begun_.push_back({node, 0});
    while (!begun_.empty()) {
      const NodeId at = begun_.back().node;
      const auto operands = from_.inputs(from_.nodes[at]);
      if (begun_.back().next == operands.size()) {
        begun_.pop_back();
        write_node(at);
        continue;
      }
      const ValueId v = operands[begun_.back().next++];
      if (must_be_refreshed(v)) begun_.push_back({from_.values[v].node, 0});
    }
  }

  bool must_be_refreshed(ValueId v) const {
    const ValueId viewed = facts_.windows[v].viewed;
    return viewed != v && window_on_[v] != rewriter_.at(viewed);
  }

  void write_node(NodeId node) {
    const bool first = !is_written_[node];
    is_written_[node] = 1;
    result_.source.push_back(node);
    result_.late.push_back(first && node != stage_);
    first ? write_original(node) : write_clone(node);
  }

  void write_original(NodeId node) {
    const NodeId id = rewriter_.copy(node);
    if (node != stage_ && before_stage_ != kNone) {  // the pool ends with what the last node waits for
      rewriter_.graph().refs.push_back(before_stage_);
      ++rewriter_.graph().nodes[id].n_after;
    }
    const Node& n = from_.nodes[node];
    for (ValueId v = n.first_output; v < n.first_output + n.n_outputs; ++v) {
      original_[v] = last_value_ = rewriter_.at(v);
      window_on_[v] = rewriter_.at(facts_.windows[v].viewed);
    }
  }

  void write_clone(NodeId node) {
    const Node& n = from_.nodes[node];
    std::vector<ValueId> operands;
    for (ValueId v : from_.inputs(n)) operands.push_back(rewriter_.at(v));
    // `of` names the original, even where a clone stands in for it by now.
    for (ValueId v = n.first_output; v < n.first_output + n.n_outputs; ++v) rewriter_.replace(v, original_[v]);
    const NodeId id = rewriter_.clone(node, operands, edges_for(operands));
    const ValueId first = rewriter_.graph().nodes[id].first_output;
    for (std::int32_t i = 0; i < n.n_outputs; ++i) {
      const ValueId v = n.first_output + i;
      const bool stands_in = facts_.in_arena(v) || facts_.windows[v].viewed != v;  // others are read where they always lie
      if (stands_in) rewriter_.replace(v, first + i);
      window_on_[v] = rewriter_.at(facts_.windows[v].viewed);
    }
    last_value_ = first + n.n_outputs - 1;
  }

  std::vector<ValueId> edges_for(const std::vector<ValueId>& operands) const {
    if (before_stage_ == kNone || std::find(operands.begin(), operands.end(), before_stage_) != operands.end()) return {};
    return {before_stage_};
  }

  const Facts& facts_;
  const Graph& from_;
  const RunLists& runs_;
  const std::vector<char> late_window_;
  Rewriter rewriter_;
  std::vector<ValueId> original_;   // by value: the id of the first copy
  std::vector<ValueId> window_on_;  // by value: the copy of what it is a view of that the current copy of a view looks at
  std::vector<char> is_written_;    // by node
  std::vector<Begun> begun_;
  NodeId stage_ = 0;
  ValueId last_value_ = kNone;  // made by the last node written that makes any
  ValueId before_stage_ = kNone;
  ClonedGraph result_;
};

}  // namespace

ClonedGraph clone_graph(const Facts& facts, const RunLists& runs) { return CloneWriter(facts, runs).write(); }

void apply_steps(const std::vector<Step>& journal, std::size_t first, std::size_t last, RunLists* runs) {
  for (std::size_t i = first; i < last; ++i) {
    std::vector<NodeId>& list = (*runs)[journal[i].stage];
    const auto at = std::lower_bound(list.begin(), list.end(), journal[i].node);
    if (journal[i].added)
      list.insert(at, journal[i].node);
    else
      list.erase(at);
  }
}

RunLists runs_as_recorded(const Facts& facts) {
  RunLists runs;
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) runs.push_back({n});
  return runs;
}

RunLists runs_after(const Facts& facts, const std::vector<Step>& journal, std::size_t steps) {
  RunLists runs = runs_as_recorded(facts);
  apply_steps(journal, 0, steps, &runs);
  return runs;
}

double schedule_cost(const Facts& facts, const RunLists& runs) {
  double us = facts.keep_all_cost;
  std::vector<char> has_run(facts.graph->nodes.size(), 0);
  for (const auto& stage : runs)
    for (NodeId n : stage)
      if (std::exchange(has_run[n], 1)) us += facts.cost[n];
  return us;
}

}  // namespace tapedeck
