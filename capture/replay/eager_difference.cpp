#include <tapedeck/capture/replay/eager_difference.h>

#include <tapedeck/capture/replay/executor.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace tapedeck {

namespace {

// Every result of a node by the name that the planner gives it: its own, or v and its number (planner/prepare.cpp).
using EagerValues = std::unordered_map<std::string, Tensor>;

EagerValues all_eager_values(const Graph& captured, const std::vector<Tensor>& inputs, const std::vector<Tensor>& state) {
  Graph all = captured;
  all.outputs.clear();
  for (ValueId v = all.n_inputs + all.n_state; v < all.value_count(); ++v)
    if (all.values[v].node != kNone) all.outputs.push_back(v);
  all.output_names.assign(all.outputs.size(), {});
  all.updates.clear();
  EagerResult result = run_eagerly(all, inputs, state);
  EagerValues values;
  for (std::size_t i = 0; i < all.outputs.size(); ++i) {
    const Value& value = all.values[all.outputs[i]];
    values.emplace(value.name.empty() ? "v" + std::to_string(all.outputs[i]) : value.name.str(), std::move(result.outputs[i]));
  }
  return values;
}

// The name under which the captured graph has the result of a planned node. Only clones have several results under one name
// of their node; of those the first result is compared.
std::string captured_name(const Graph& planned, const Monitored& seen) {
  const Node& node = planned.nodes[seen.node];
  const bool is_first = planned.value_name(node.first_output) == seen.name;
  return node.origin.clone && !node.origin.of.empty() && is_first ? node.origin.of.str() : seen.name;
}

}  // namespace

std::optional<NodeDifference> first_differing_node(const Plan& plan, const Graph& captured, const std::vector<Tensor>& inputs,
                                                   const std::vector<Tensor>& state, int threads) {
  if (plan.graph.nodes.empty()) return std::nullopt;
  const EagerValues eager = all_eager_values(captured, inputs, state);
  Executor executor(plan, {.threads = threads});
  const Graph& planned = executor.plan().graph;
  for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
  const std::vector<std::string> names = executor.state_names();
  for (std::size_t i = 0; i < state.size(); ++i) executor.set_state(names[i], state[i]);
  std::map<NodeId, NodeDifference> found;
  executor.monitor("*", [&](const Monitored& seen) {
    const auto it = eager.find(captured_name(planned, seen));
    if (it == eager.end() || it->second.type() != seen.value.type() || found.count(seen.node) > 0) return;
    if (bit_equal(seen.value, it->second)) return;
    const Node& node = planned.nodes[seen.node];
    found.emplace(seen.node, NodeDifference{seen.name, node.op->name, planned.node_text(seen.node), node.origin.site.str(),
                                            compare_tensors(seen.value, it->second, {.bits = true})});
  });
  executor.run();
  if (found.empty()) return std::nullopt;
  return std::move(found.begin()->second);
}

}  // namespace tapedeck
