#include <tapedeck/viewer/model/same_step.h>

namespace tapedeck::viewer {

NodesByValue::NodesByValue(const Graph& graph) {
  for (NodeId n = graph.node_count() - 1; n >= 0; --n) {
    const Node& node = graph.nodes[n];
    if (node.n_outputs == 0) continue;
    const Name name = graph.values[node.first_output].name;
    if (!name.empty()) nodes_[name.id()] = n;
  }
}

NodeId NodesByValue::first_maker(Name name) const {
  const auto found = nodes_.find(name.id());
  return name.empty() || found == nodes_.end() ? kNone : found->second;
}

std::vector<std::int64_t> live_bytes_along(const PlanModel& other, const PlanModel& shown) {
  const NodesByValue nodes(other.graph());
  std::vector<std::int64_t> along;
  std::int64_t last = other.nodes() > 0 ? other.curve().front() : 0;
  for (const Node& node : shown.graph().nodes) {
    const NodeId same = node.n_outputs == 0 ? kNone : nodes.first_maker(shown.graph().values[node.first_output].name);
    if (same != kNone && !node.origin.clone) last = other.curve()[same];
    along.push_back(last);
  }
  return along;
}

}  // namespace tapedeck::viewer
