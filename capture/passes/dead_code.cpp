// Dead code: a node is needed if the graph returns or stores one of its results, if it has an effect, or if a needed node reads
// one of its results.
//     %a = exp(%x); %b = neg(%x); return %a      becomes      %a = exp(%x); return %a
// Order edges keep no node alive: an edge to a dropped node is dropped too. Cost: one walk.
#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>

#include <algorithm>

namespace tapedeck {

namespace {

std::vector<char> needed_nodes(const Graph& graph) {
  std::vector<char> needed(graph.nodes.size(), 0);
  const auto need = [&](ValueId v) {
    if (graph.values[v].node != kNone) needed[graph.values[v].node] = 1;
  };
  for (ValueId v : graph.outputs) need(v);
  for (const Update& u : graph.updates) need(u.value);
  for (NodeId n = graph.node_count() - 1; n >= 0; --n) {
    if (traits_within(graph, graph.nodes[n]) & kEffect) needed[n] = 1;
    if (!needed[n]) continue;
    for (ValueId v : graph.inputs(graph.nodes[n])) need(v);
  }
  return needed;
}

}  // namespace

Graph dead_code(Graph graph) {
  const std::vector<char> needed = needed_nodes(graph);
  if (std::find(needed.begin(), needed.end(), 0) == needed.end()) return graph;
  Rewriter rewriter(graph);
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (needed[n]) rewriter.copy(n);
  return rewriter.finish();
}

namespace {
const bool dead_code_pass = register_pass({
    .name = "dead_code",
    .aliases = {"dce"},
    .doc = "drops nodes whose results nobody needs",
    .before = "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  _: f32[4] = neg(%x)\n  return %a\n}\n",
    .after = "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  return %a\n}\n",
    .run = [](Graph g, const PassOptions&) { return dead_code(std::move(g)); },
    .level = OptimizationLevel::cleanups,
});
}  // namespace

}  // namespace tapedeck
