#include <tapedeck/capture/planner/rematerialize/costly_nodes.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {

namespace {

constexpr double kMostFlopsPerByte = 10;
constexpr std::int32_t kShortChain = 8;

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
  if (node.n_regions > 0 && !node.op->is(kTiled)) return true;
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

void cut_long_chains(const Facts& facts, std::vector<char>* marked) {
  const auto count = static_cast<double>(std::count(marked->begin(), marked->end(), 1));
  const std::int32_t longest = std::max(kShortChain, static_cast<std::int32_t>(std::sqrt(count)));
  std::vector<std::int32_t> length(marked->size(), 0);  // of the longest chain of marked nodes that ends here
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) {
    if (!(*marked)[n]) continue;
    for (ValueId root : facts.reads(n))
      if (facts.in_arena(root)) length[n] = std::max(length[n], length[facts.graph->values[root].node]);
    if (++length[n] <= longest) continue;
    length[n] = 0;
    (*marked)[n] = 0;
  }
}

}  // namespace tapedeck
