// Common subexpression elimination: equal op, operands, attributes and types compute equal values, so only the first is kept.
//     %a = exp(%x); %b = exp(%x); %c = add(%a, %b)      becomes      %a = exp(%x); %c = add(%a, %a)
// Leaves alone: effects; clones, which exist to be computed again; nodes with order edges; `opaque` and other placeholders,
// which stand for computations that only look equal. Random ops are pure, so two draws on one path are one. Cost: a hash for
// each node and for everything in its regions.
#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/passes/marks.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/ir/compare_nodes.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace tapedeck {

namespace {

bool mergeable(const Graph& graph, const Node& node) {
  if (node.origin.clone || node.n_after > 0 || node.n_outputs == 0) return false;
  return (traits_within(graph, node) & (kEffect | kPlanOnly)) == 0;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) { return (hash ^ word) * 0x9e3779b97f4a7c15u + (hash >> 29); }

// By value: the first value that is computed in the same way.
using Firsts = std::vector<ValueId>;

std::uint64_t hash_node(const Graph& graph, const Node& node, const Firsts& first) {
  std::uint64_t hash = mix(hash_attributes(graph, node), reinterpret_cast<std::uintptr_t>(node.op));
  for (ValueId v : graph.inputs(node)) hash = mix(hash, static_cast<std::uint64_t>(first[v]));
  for (const Region& region : graph.regions_of(node)) hash = mix(hash, hash_region(*region));
  return hash;
}

bool same_node(const Graph& graph, const Node& a, const Node& b, const Firsts& first) {
  if (a.op != b.op || a.n_inputs != b.n_inputs || a.n_outputs != b.n_outputs) return false;
  for (std::int32_t i = 0; i < a.n_inputs; ++i)
    if (first[graph.inputs(a)[i]] != first[graph.inputs(b)[i]]) return false;
  for (std::int32_t i = 0; i < a.n_outputs; ++i)
    if (graph.output_values(a)[i].type != graph.output_values(b)[i].type) return false;
  return same_attributes(graph, a, graph, b);
}

}  // namespace

namespace {

// Nodes by hash: a table that is never more than half full, searched from the place of the hash onwards.
class SeenNodes {
 public:
  explicit SeenNodes(std::size_t nodes) : slots_(std::bit_ceil(2 * nodes + 1), {0, kNone}) {}

  // The earlier node for which `same` returns true; kNone if there is none, and then n is entered.
  template <class Same>
  NodeId find_or_add(std::uint64_t hash, NodeId n, Same&& same) {
    std::size_t i = hash >> 7;
    for (;; ++i) {
      auto& [known, node] = slots_[i & (slots_.size() - 1)];
      if (node == kNone) {
        known = hash, node = n;
        return kNone;
      }
      if (known == hash && same(node)) return node;
    }
  }

 private:
  std::vector<std::pair<std::uint64_t, NodeId>> slots_;
};

// By node: an earlier node that computes the same; kNone if there is none.
std::vector<NodeId> find_equals(const Graph& graph) {
  std::vector<NodeId> equals(graph.nodes.size(), kNone);
  Firsts first(graph.values.size());
  for (ValueId v = 0; v < graph.value_count(); ++v) first[v] = v;
  SeenNodes seen(graph.nodes.size());
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    if (!mergeable(graph, node)) continue;
    equals[n] = seen.find_or_add(hash_node(graph, node, first), n,
                                 [&](NodeId other) { return same_node(graph, graph.nodes[other], node, first); });
    if (equals[n] == kNone) continue;
    for (std::int32_t i = 0; i < node.n_outputs; ++i) first[node.first_output + i] = graph.nodes[equals[n]].first_output + i;
  }
  return equals;
}

}  // namespace

Graph cse(Graph graph) {
  const std::vector<NodeId> equals = find_equals(graph);
  if (std::all_of(equals.begin(), equals.end(), [](NodeId n) { return n == kNone; })) return graph;
  Rewriter rewriter(graph);
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    if (equals[n] == kNone) {
      rewriter.copy(n);
      continue;
    }
    const Node &node = graph.nodes[n], &kept = graph.nodes[equals[n]];
    for (std::int32_t i = 0; i < node.n_outputs; ++i)
      rewriter.replace(node.first_output + i, rewriter.at(kept.first_output + i));
    hand_on_mark(node.origin.wish, rewriter.at(kept.first_output), &rewriter.graph());
  }
  return rewriter.finish();
}

namespace {
const bool cse_pass = register_pass({
    .name = "cse",
    .aliases = {"common_subexpressions"},
    .doc = "computes equal things once",
    .before =
        "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  %b: f32[4] = exp(%x)\n  %c: f32[4] = add(%a, %b)\n  return %c\n}\n",
    .after = "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  %c: f32[4] = add(%a, %a)\n  return %c\n}\n",
    .run = [](Graph g, const PassOptions&) { return cse(std::move(g)); },
});
}  // namespace

}  // namespace tapedeck
