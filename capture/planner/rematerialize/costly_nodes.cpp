#include <tapedeck/capture/planner/rematerialize/costly_nodes.h>

namespace tapedeck {

namespace {

constexpr double kMostFlopsPerByte = 10;

double mean_cost_of_forward(const Facts& facts) {
  double us = 0;
  std::int64_t nodes = 0;
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    if (facts.graph->nodes[n].origin.phase != Phase::forward || facts.is_window(n)) continue;
    us += facts.cost[n];
    ++nodes;
  }
  return nodes == 0 ? 0 : us / static_cast<double>(nodes);
}

bool is_costly(const Facts& facts, NodeId n, double mean_us) {
  constexpr double kRounding = 1 + 1e-9;  // equal nodes are all average, however their sum was rounded
  const Graph& graph = *facts.graph;
  const Node& node = graph.nodes[n];
  if (node.n_regions > 0) return true;
  if (node.op->is(kCheap) || node.op->is(kElementwise) || node.op->is(kView) || !node.op->cost) return false;
  const Cost cost = node.op->cost(graph.input_types(node), graph.output_types(node), graph.attributes(node));
  return cost.us >= 0 ? facts.cost[n] > mean_us * kRounding : cost.flops > kMostFlopsPerByte * cost.bytes;
}

}  // namespace

std::vector<char> costly_nodes(const Facts& facts) {
  const double mean_us = mean_cost_of_forward(facts);
  std::vector<char> costly(facts.graph->nodes.size(), 0);
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) costly[n] = is_costly(facts, n, mean_us);
  return costly;
}

}  // namespace tapedeck
