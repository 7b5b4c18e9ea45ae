// Common subexpression elimination: equal op, operands, attributes and types compute equal values, so keep the first.
//     %a = exp(%x); %b = exp(%x); %c = add(%a, %b)      becomes      %a = exp(%x); %c = add(%a, %a)
// Leaves alone: effects; clones, which are there to be computed again; nodes with order edges; and `opaque` and its like, which
// stand for computations that only look equal. Random ops are pure, so two draws on one path are one. Cost: a hash per node.
#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>

#include <algorithm>
#include <unordered_map>

namespace tapedeck {

namespace {

bool mergeable(const Graph& graph, const Node& node) {
  if (node.origin.clone || node.n_after > 0 || node.n_outputs == 0) return false;
  return (traits_within(graph, node) & (kEffect | kPlanOnly)) == 0;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) { return (hash ^ word) * 0x9e3779b97f4a7c15u + (hash >> 29); }

std::uint64_t hash_node(const Graph& graph, const Node& node, const Rewriter& rewriter) {
  std::uint64_t hash = mix(hash_attributes(graph, node), reinterpret_cast<std::uintptr_t>(node.op));
  for (ValueId v : graph.inputs(node)) hash = mix(hash, static_cast<std::uint64_t>(rewriter.at(v)));
  for (const Region& region : graph.regions_of(node))
    hash = mix(hash, static_cast<std::uint64_t>(region->node_count()) << 20 ^ static_cast<std::uint64_t>(region->value_count()));
  return hash;
}

bool same_node(const Graph& graph, const Node& a, const Node& b, const Rewriter& rewriter) {
  if (a.op != b.op || a.n_inputs != b.n_inputs || a.n_outputs != b.n_outputs) return false;
  for (std::int32_t i = 0; i < a.n_inputs; ++i)
    if (rewriter.at(graph.inputs(a)[i]) != rewriter.at(graph.inputs(b)[i])) return false;
  for (std::int32_t i = 0; i < a.n_outputs; ++i)
    if (graph.output_values(a)[i].type != graph.output_values(b)[i].type) return false;
  return same_attributes(graph, a, graph, b);
}

}  // namespace

Graph cse(Graph graph) {
  Rewriter rewriter(graph);
  std::unordered_multimap<std::uint64_t, NodeId> seen;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    if (!mergeable(graph, node)) {
      rewriter.copy(n);
      continue;
    }
    const std::uint64_t hash = hash_node(graph, node, rewriter);
    const auto [first, last] = seen.equal_range(hash);
    const auto equal = std::find_if(
        first, last, [&](const auto& entry) { return same_node(graph, graph.nodes[entry.second], node, rewriter); });
    if (equal == last) {
      rewriter.copy(n);
      seen.emplace(hash, n);
      continue;
    }
    const Node& kept = graph.nodes[equal->second];
    for (std::int32_t i = 0; i < node.n_outputs; ++i)
      rewriter.replace(node.first_output + i, rewriter.at(kept.first_output + i));
  }
  return rewriter.finish();
}

namespace {
const bool registered = register_pass({
    .name = "cse",
    .aliases = {"common_subexpressions"},
    .doc = "computes equal things once",
    .before = "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  %b: f32[4] = exp(%x)\n  %c: f32[4] = add(%a, %b)\n  return %c\n}\n",
    .after = "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  %c: f32[4] = add(%a, %a)\n  return %c\n}\n",
    .run = [](Graph g, const PassOptions&) { return cse(std::move(g)); },
});
}  // namespace

}  // namespace tapedeck
