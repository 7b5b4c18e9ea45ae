#include <tapedeck/capture/analysis/cost.h>

#include <tapedeck/capture/analysis/control.h>

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
    costs.push_back(sane(node.n_regions > 0 ? control_cost_us(graph, node)
                                            : cost_us(*node.op, graph.input_types(node), graph.output_types(node), graph.attributes(node))));
  return costs;
}

std::int64_t node_workspace(const Graph& graph, const Node& node) {
  if (node.n_regions > 0) return control_workspace(graph, node);
  return std::max<std::int64_t>(workspace_bytes(*node.op, graph.input_types(node), graph.output_types(node), graph.attributes(node)), 0);
}

std::vector<std::int64_t> node_workspaces(const Graph& graph) {
  std::vector<std::int64_t> bytes;
  bytes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) bytes.push_back(node_workspace(graph, node));
  return bytes;
}

}  // namespace tapedeck
