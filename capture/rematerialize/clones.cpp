// The graph that a schedule with clones stands for. Nodes keep their order; readers read the copy of a value made last.
//     %h = relu(%x); %y = exp(%h); ... ; %d = mul(%g, %h)
// with relu cloned in mul's stage becomes
//     %h = relu(%x); %y = exp(%h); ... ; %9 = relu(%x) [clone, of=%h, after=[..]]; %d = mul(%g, %9)
#include <tapedeck/capture/rematerialize/rematerialize.h>

#include <algorithm>

namespace tapedeck {

namespace {

class CloneWriter {
 public:
  CloneWriter(const Facts& facts, const CloneLists& clones)
      : facts_(facts),
        from_(*facts.graph),
        clones_(clones),
        rewriter_(from_),
        original_(from_.values.size(), kNone),
        window_on_(from_.values.size(), kNone) {}

  ClonedGraph write() {
    for (NodeId stage = 0; stage < from_.node_count(); ++stage) {
      before_stage_ = last_value_;
      for (NodeId node : clones_[stage]) write_clone(node);
      write_original(stage);
    }
    for (ValueId v = from_.n_inputs + from_.n_state; v < from_.value_count(); ++v) rewriter_.replace(v, original_[v]);
    result_.graph = rewriter_.finish();
    return std::move(result_);
  }

 private:
  // Operands that are views of what was made again since are re-made first.
  void refresh_windows(NodeId node) {
    for (ValueId v : from_.inputs(from_.nodes[node])) {
      const ValueId viewed = facts_.windows[v].viewed;
      if (viewed == v || window_on_[v] == rewriter_.at(viewed)) continue;
      write_clone(from_.values[v].node);
    }
  }

  void write_original(NodeId node) {
    refresh_windows(node);
    rewriter_.copy(node);
    result_.source.push_back(node);
    const Node& n = from_.nodes[node];
    for (ValueId v = n.first_output; v < n.first_output + n.n_outputs; ++v) {
      original_[v] = last_value_ = rewriter_.at(v);
      window_on_[v] = rewriter_.at(facts_.windows[v].viewed);
    }
  }

  void write_clone(NodeId node) {
    refresh_windows(node);
    const Node& n = from_.nodes[node];
    std::vector<ValueId> operands;
    for (ValueId v : from_.inputs(n)) operands.push_back(rewriter_.at(v));
    // `of` names the original, even where a clone stands in for it by now.
    for (ValueId v = n.first_output; v < n.first_output + n.n_outputs; ++v) rewriter_.replace(v, original_[v]);
    const NodeId id = rewriter_.clone(node, operands, edges_for(operands));
    result_.source.push_back(node);
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
  const CloneLists& clones_;
  Rewriter rewriter_;
  std::vector<ValueId> original_;   // by value: the id of the first copy
  std::vector<ValueId> window_on_;  // by value: the copy of what it is a view of that the current copy of a view looks at
  ValueId last_value_ = kNone;      // made by the last node written that makes any
  ValueId before_stage_ = kNone;
  ClonedGraph result_;
};

}  // namespace

ClonedGraph clone_graph(const Facts& facts, const CloneLists& clones) { return CloneWriter(facts, clones).write(); }

void apply_steps(const std::vector<Step>& journal, std::size_t first, std::size_t last, CloneLists* clones) {
  for (std::size_t i = first; i < last; ++i) {
    std::vector<NodeId>& list = (*clones)[journal[i].stage];
    const auto at = std::lower_bound(list.begin(), list.end(), journal[i].node);
    if (journal[i].added)
      list.insert(at, journal[i].node);
    else
      list.erase(at);
  }
}

CloneLists clones_after(const Facts& facts, const std::vector<Step>& journal, std::size_t steps) {
  CloneLists clones(facts.graph->nodes.size());
  apply_steps(journal, 0, steps, &clones);
  return clones;
}

}  // namespace tapedeck
