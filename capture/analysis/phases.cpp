#include <tapedeck/capture/analysis/phases.h>

#include <algorithm>

namespace tapedeck {

std::vector<Phase> run_phases(const Graph& graph) {
  std::vector<Phase> phases;
  for (const Node& node : graph.nodes) phases.push_back(node.origin.phase);
  // Clones and other nodes that run later than recorded go with their first reader. A reader stands behind them, and may itself
  // be such a node.
  std::vector<Phase> read_in(graph.values.size(), Phase::update);
  std::vector<char> read(graph.values.size(), 0);
  for (NodeId n = graph.node_count() - 1; n >= 0; --n) {
    const Node& node = graph.nodes[n];
    Phase& phase = phases[n];
    if (node.origin.clone || node.n_after > 0) {
      Phase first = Phase::update;
      bool any = false;
      for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
        if (!read[v]) continue;
        first = std::min(first, read_in[v]);
        any = true;
      }
      if (any) phase = std::max(phase, first);
    }
    for (ValueId v : graph.inputs(node)) {
      read[v] = 1;
      read_in[v] = std::min(read_in[v], phase);
    }
  }
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    const auto wait_for = [&](ValueId v) {
      const NodeId maker = graph.values[v].node;
      if (maker != kNone) phases[n] = std::max(phases[n], phases[maker]);
    };
    for (ValueId v : graph.inputs(node)) wait_for(v);
    for (ValueId v : graph.after(node)) wait_for(v);
  }
  return phases;
}

}  // namespace tapedeck
