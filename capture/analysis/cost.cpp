#include <tapedeck/capture/analysis/cost.h>

#include <algorithm>

namespace tapedeck {

namespace {

// One node must not drown the sum of all others: larger than any real computation, small enough to add a million of them
// exactly.
constexpr double kMostUs = 1e15;

double sane(double us) { return us >= 0 ? std::min(us, kMostUs) : 0.0; }  // a NaN compares false

}  // namespace

std::vector<double> node_costs(const Graph& graph) {
  std::vector<double> costs;
  costs.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes)
    costs.push_back(sane(cost_us(*node.op, graph.input_types(node), graph.output_types(node), graph.attributes(node))));
  return costs;
}

std::vector<std::int64_t> node_workspaces(const Graph& graph) {
  std::vector<std::int64_t> bytes;
  bytes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    const std::int64_t scratch = workspace_bytes(*node.op, graph.input_types(node), graph.output_types(node), graph.attributes(node));
    bytes.push_back(std::max<std::int64_t>(scratch, 0));
  }
  return bytes;
}

}  // namespace tapedeck
