#include <tapedeck/viewer/plan/same_step.h>

#include <algorithm>

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
  std::vector<std::int64_t> along;
  const std::int64_t from = other.nodes(), to = shown.nodes();
  if (from == 0) return along;
  if (&other == &shown) return other.curve();
  along.reserve(static_cast<std::size_t>(to));
  for (std::int64_t n = 0; n < to; ++n) {
    const auto begin = other.curve().begin() + n * from / to, end = other.curve().begin() + ((n + 1) * from + to - 1) / to;
    along.push_back(*std::max_element(begin, std::max(end, begin + 1)));
  }
  return along;
}

}  // namespace tapedeck::viewer
