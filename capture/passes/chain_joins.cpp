// A join whose first operands an earlier join has joined begins with the result of that join. A DenseNet joins all its features
// before each layer. With this pass its joins are a chain, which the plan lays into one buffer (analysis/parts.h). Without it
// the joins copy all these bytes.
//     %c = concat(%a, %b); %d = f(%c); %e = concat(%a, %b, %d)      becomes      %e = concat(%c, %d)
// For ops that declare joins_in_turn (engine/ir/op.h). The longest such beginning is taken, and of equal ones the first. Leaves
// alone: clones, nodes with order edges, nodes of different checkpoint regions, and joins of inputs, state and constants alone:
// these have bytes already, and a copy of them would live on. Cost: O(operands), by hashes of beginnings.
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tapedeck {

namespace {

class Chains {
 public:
  explicit Chains(const Graph& graph) : graph_(graph), joined_(graph.nodes.size(), kNone) {
    for (NodeId n = 0; n < graph.node_count(); ++n) {
      if (!node(n).op->joins_in_turn || node(n).origin.clone || node(n).n_after > 0) continue;
      const std::vector<std::size_t> hashes = hash_beginnings(n);
      for (std::size_t length = hashes.size() - 1; length >= 2 && joined_[n] == kNone; --length)
        joined_[n] = find(n, hashes[length - 1], length);
      if (joins_computed(n)) by_hash_[hashes.back()].push_back(n);
    }
  }

  // By node: the node whose operands it begins with; kNone if there is none.
  const std::vector<NodeId>& joined() const { return joined_; }

 private:
  const Node& node(NodeId n) const { return graph_.nodes[n]; }

  // Hashes of the first operand, of the first two operands, and so on, with the attributes.
  std::vector<std::size_t> hash_beginnings(NodeId n) const {
    std::size_t hash = hash_attributes(graph_, node(n)) + static_cast<std::size_t>(node(n).op->id);
    std::vector<std::size_t> hashes;
    for (ValueId v : graph_.inputs(node(n)))
      hashes.push_back(hash = (hash ^ static_cast<std::size_t>(v)) * 0x9E3779B97F4A7C15u + (hash >> 29));
    return hashes;
  }

  bool joins_computed(NodeId n) const {
    const auto operands = graph_.inputs(node(n));
    return std::all_of(operands.begin(), operands.end(), [&](ValueId v) {
      const NodeId maker = graph_.values[v].node;
      return maker != kNone && !graph_.literal(node(maker));
    });
  }

  NodeId find(NodeId n, std::size_t hash, std::size_t length) const {
    const auto it = by_hash_.find(hash);
    if (it == by_hash_.end()) return kNone;
    const auto operands = graph_.inputs(node(n));
    for (NodeId m : it->second) {
      const auto begins = graph_.inputs(node(m));
      const bool same_region = node(m).origin.region == node(n).origin.region;
      if (node(m).op == node(n).op && begins.size() == length && same_region &&
          std::equal(begins.begin(), begins.end(), operands.begin()) && same_attributes(graph_, node(m), graph_, node(n)))
        return m;
    }
    return kNone;
  }

  const Graph& graph_;
  std::unordered_map<std::size_t, std::vector<NodeId>> by_hash_;  // used for lookups alone; its order does not matter
  std::vector<NodeId> joined_;
};

}  // namespace

Graph chain_joins(Graph graph) {
  const Chains chains(graph);
  if (std::all_of(chains.joined().begin(), chains.joined().end(), [](NodeId m) { return m == kNone; })) return graph;
  Rewriter to(graph);
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const NodeId m = chains.joined()[n];
    if (m == kNone) {
      to.copy(n);
      continue;
    }
    const Node& node = graph.nodes[n];
    const Node& begins = graph.nodes[m];
    std::vector<ValueId> operands = {to.at(begins.first_output)};
    const auto all = graph.inputs(node);
    for (auto i = static_cast<std::size_t>(begins.n_inputs); i < all.size(); ++i) operands.push_back(to.at(all[i]));
    const std::vector<Type> types = graph.output_types(node);
    const NodeId made = to.graph().add_node(*node.op, operands, graph.attributes(node), types, node.origin);
    const ValueId v = to.graph().nodes[made].first_output;
    to.graph().values[v].name = graph.values[node.first_output].name;
    to.replace(node.first_output, v);
  }
  return to.finish();
}

namespace {
const bool chain_joins_pass = register_pass({
    .name = "chain_joins",
    .doc = "lets a join whose first operands another has joined begin with that one's result",
    .before = "graph g(%x: f32[2,3], %y: f32[2,3]) {\n  %a: f32[2,3] = tanh(%x)\n  %b: f32[2,3] = tanh(%y)\n  %c: f32[4,3] = "
              "concat(%a, %b) {axis=0}\n  %d: f32[2,3] = exp(%a)\n"
              "  %e: f32[6,3] = concat(%a, %b, %d) {axis=0}\n  return %c, %e\n}\n",
    .after = "graph g(%x: f32[2,3], %y: f32[2,3]) {\n  %a: f32[2,3] = tanh(%x)\n  %b: f32[2,3] = tanh(%y)\n  %c: f32[4,3] = "
             "concat(%a, %b) {axis=0}\n  %d: f32[2,3] = exp(%a)\n"
             "  %e: f32[6,3] = concat(%c, %d) {axis=0}\n  return %c, %e\n}\n",
    .run = [](Graph g, const PassOptions&) { return chain_joins(std::move(g)); },
});
}  // namespace

}  // namespace tapedeck
