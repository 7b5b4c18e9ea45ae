#include <tapedeck/viewer/plan/same_step.h>

#include <algorithm>
#include <functional>

namespace tapedeck::viewer {

NodesByValue::NodesByValue(const Graph& graph) {
  nodes_.reserve(graph.nodes.size());
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.n_outputs == 0) continue;
    const Name name = graph.values[node.first_output].name;
    if (!name.empty()) nodes_.emplace_back(name.id(), n);
  }
  // Of equal names the first node comes first.
  const std::less<const void*> before;
  std::sort(nodes_.begin(), nodes_.end(), [&](const Named& a, const Named& b) {
    return a.first != b.first ? before(a.first, b.first) : a.second < b.second;
  });
}

NodeId NodesByValue::first_maker(Name name) const {
  if (name.empty()) return kNone;
  const auto found = std::lower_bound(nodes_.begin(), nodes_.end(), name.id(), [](const Named& named, const void* id) {
    return std::less<const void*>()(named.first, id);
  });
  return found == nodes_.end() || found->first != name.id() ? kNone : found->second;
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
