#include <tapedeck/capture/cost/node_costs.h>

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/capture/cost/control_cost.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

double estimate(const Graph& graph, const Node& node, const Calibration* calibration) {
  if (node.n_regions > 0) return control_cost_us(graph, node, calibration);
  const std::vector<Type> inputs = graph.input_types(node), outputs = graph.output_types(node);
  if (calibration) return calibrated_us(*calibration, *node.op, inputs, outputs, graph.attributes(node));
  return cost_us(*node.op, inputs, outputs, graph.attributes(node));
}

}  // namespace

std::vector<double> node_costs(const Graph& graph, const Calibration* calibration) {
  std::vector<double> costs;
  costs.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) costs.push_back(sane_us(estimate(graph, node, calibration)));
  return costs;
}

std::int64_t kernel_workspace(const Graph& graph, const Node& node) {
  if (graph.literal(node)) return 0;  // runs nothing
  try {
    return workspace_bytes(*node.op, graph.input_types(node), graph.output_types(node), graph.attributes(node));
  } catch (const TypeError& error) {
    const auto n = static_cast<NodeId>(&node - graph.nodes.data());
    throw InvalidGraphError(fmt::format("node {}: {}: {}", n, graph.node_text(n), error.what()));
  }
}

}  // namespace tapedeck
