#include <tapedeck/capture/check/check_plan.h>

#include <tapedeck/capture/analysis/traits.h>

#include <fmt/format.h>

#include <unordered_map>

namespace tapedeck {

namespace {

// Maps every value to the original that it is or repeats, node by node, so that the operands of a clone are known before the
// clone.
class CloneChecker {
 public:
  explicit CloneChecker(const Plan& plan) : plan_(plan), g_(plan.graph) {}

  std::vector<std::string> check() {
    for (ValueId v = 0; v < g_.n_inputs + g_.n_state; ++v) original_.push_back(v);
    std::int32_t clones = 0;
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      const Node& node = g_.nodes[n];
      clones += node.origin.clone;
      const ValueId first = node.origin.clone ? check_clone(n) : node.first_output;
      for (std::int32_t i = 0; i < node.n_outputs; ++i) original_.push_back(first + i);
      if (!node.origin.clone && node.n_outputs > 0) by_name_.emplace(g_.value_name(node.first_output), n);
    }
    for (ValueId v : g_.outputs) check_result(v);
    for (const Update& u : g_.updates) check_result(u.value);
    if (plan_.nodes != g_.node_count())
      found_.push_back(fmt::format("the plan says {} nodes, the graph has {}", plan_.nodes, g_.node_count()));
    if (plan_.recomputed_nodes != clones)
      found_.push_back(
          fmt::format("the plan says {} recomputed nodes, the graph has {} clones", plan_.recomputed_nodes, clones));
    return std::move(found_);
  }

 private:
  // The first output of the node that clone n repeats; its own first output if it repeats no node correctly.
  ValueId check_clone(NodeId n) {
    const Node& clone = g_.nodes[n];
    const auto it = by_name_.find(clone.origin.of.str());
    if (it == by_name_.end()) {
      found_.push_back(fmt::format("`{}` repeats %{}, which no earlier node makes", g_.node_text(n), clone.origin.of.view()));
      return clone.first_output;
    }
    const Node& original = g_.nodes[it->second];
    if (!same_computation(clone, original)) {
      found_.push_back(fmt::format("`{}` is no repetition of `{}`", g_.node_text(n), g_.node_text(it->second)));
      return clone.first_output;
    }
    return original.first_output;
  }

  bool same_computation(const Node& clone, const Node& original) const {
    if (clone.op != original.op || (traits_within(g_, clone) & kEffect) != 0 || clone.n_inputs != original.n_inputs ||
        clone.n_outputs != original.n_outputs)
      return false;
    for (std::int32_t i = 0; i < clone.n_inputs; ++i)
      if (original_[g_.inputs(clone)[i]] != original_[g_.inputs(original)[i]]) return false;
    for (std::int32_t i = 0; i < clone.n_outputs; ++i)
      if (g_.output_values(clone)[i].type != g_.output_values(original)[i].type) return false;
    return same_attributes(g_, clone, g_, original);
  }

  void check_result(ValueId v) {
    if (g_.values[v].node != kNone && g_.nodes[g_.values[v].node].origin.clone)
      found_.push_back(fmt::format("%{} is a result of the graph and comes from a clone", g_.value_name(v)));
  }

  const Plan& plan_;
  const Graph& g_;
  std::vector<ValueId> original_;                    // by value
  std::unordered_map<std::string, NodeId> by_name_;  // originals so far, by their first output's name
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> check_clones(const Plan& plan) {
  try {
    verify(plan.graph);
  } catch (const Error& e) {
    return {e.what()};
  }
  return CloneChecker(plan).check();
}

}  // namespace tapedeck
