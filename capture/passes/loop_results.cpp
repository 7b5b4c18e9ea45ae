// Stacked results of a loop that nobody reads are not made: values kept for a backward that does not exist, or results that are
// not used.
//     %y, %all = scan(%x, %s) (..) {..}; return %y         becomes         %y = scan(%x, %s) (..) {..}; return %y
// Nodes without readers are gone already, because dead_code comes before.
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/ir/extract.h>
#include <tapedeck/engine/ops/control.h>

#include <algorithm>
#include <numeric>

namespace tapedeck {

namespace {

std::vector<bool> read_values(const Graph& g) {
  std::vector<bool> read(g.values.size());
  for (const Node& node : g.nodes) {
    for (ValueId v : g.inputs(node)) read[v] = true;
    for (ValueId v : g.after(node)) read[v] = true;
  }
  for (ValueId v : g.outputs) read[v] = true;
  for (const Update& u : g.updates) read[u.value] = true;
  return read;
}

// A loop node with fewer results.
class Trimmed {
 public:
  Trimmed(const Graph& g, const Node& node, const std::vector<bool>& read)
      : attrs_(*static_cast<const LoopAttrs*>(g.attributes(node))) {
    const std::int32_t first = node.op == &ops::while_loop ? 1 : 0, always = first + static_cast<std::int32_t>(attrs_.carried);
    const Graph& body = *g.regions_of(node).back();
    const std::int64_t residuals = attrs_.residuals;
    std::vector<ValueId> wanted;
    for (std::int32_t k = 0; k < node.n_outputs; ++k) {
      const ValueId v = node.first_output + k;
      const bool keep = k < always || read[v];
      if (keep) {
        kept_.push_back(v);
        types_.push_back(g.values[v].type);
        if (k >= first) wanted.push_back(body.outputs[k - first]);
      } else if (k >= node.n_outputs - residuals) {
        --attrs_.residuals;
      }
    }
    regions_.assign(g.regions_of(node).begin(), g.regions_of(node).end());
    if (static_cast<std::int32_t>(kept_.size()) == node.n_outputs) return;
    std::vector<ValueId> inputs(static_cast<std::size_t>(body.n_inputs));
    std::iota(inputs.begin(), inputs.end(), 0);
    regions_.back() = std::make_shared<const Graph>(extract(body, inputs, wanted));
    changed_ = true;
  }

  bool changed() const { return changed_; }

  void append(const Graph& g, const Node& node, Rewriter* to) const {
    std::vector<ValueId> operands, after;
    for (ValueId v : g.inputs(node)) operands.push_back(to->at(v));
    for (ValueId v : g.after(node)) after.push_back(to->at(v));
    const NodeId made = to->graph().add_node(*node.op, operands, &attrs_, types_, node.origin, after, regions_);
    const ValueId first = to->graph().nodes[made].first_output;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      to->graph().values[static_cast<std::size_t>(first) + k].name = g.values[kept_[k]].name;
      to->replace(kept_[k], first + static_cast<ValueId>(k));
    }
  }

 private:
  LoopAttrs attrs_;
  std::vector<ValueId> kept_;
  std::vector<Type> types_;
  std::vector<Region> regions_;
  bool changed_ = false;
};

}  // namespace

Graph loop_results(Graph graph) {
  const auto is_loop = [](const Node& node) { return node.op == &ops::while_loop || node.op == &ops::scan; };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_loop)) return graph;
  const std::vector<bool> read = read_values(graph);
  Rewriter to(graph);
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    if (is_loop(node))
      if (const Trimmed trimmed(graph, node, read); trimmed.changed()) {
        trimmed.append(graph, node, &to);
        continue;
      }
    to.copy(n);
  }
  return to.finish();
}

namespace {
const bool loop_results_pass = register_pass({
    .name = "loop_results",
    .doc = "leaves out stacked results of loops that nobody reads",
    .before = "graph g(%x: f32[2], %s: f32[3,2]) {\n"
              "  %y: f32[2], %all: f32[3,2], _: f32[3,2] = scan(%x, %s) {carried=1, scanned=1, trips=-1, reverse=false, "
              "residuals=1, checkpoint=0} (%i: i64[],\n"
              "    %c: f32[2], %t: f32[2]) {\n"
              "    %d: f32[2] = mul(%c, %t)\n"
              "    %e: f32[2] = exp(%c)\n"
              "    return %d, %c, %e\n"
              "  }\n"
              "  return %y, %all\n"
              "}\n",
    .after = "graph g(%x: f32[2], %s: f32[3,2]) {\n"
             "  %y: f32[2], %all: f32[3,2] = scan(%x, %s) {carried=1, scanned=1, trips=-1, reverse=false, residuals=0, "
             "checkpoint=0} (%i: i64[],\n"
             "    %c: f32[2], %t: f32[2]) {\n"
             "    %d: f32[2] = mul(%c, %t)\n"
             "    return %d, %c\n"
             "  }\n"
             "  return %y, %all\n"
             "}\n",
    .run = [](Graph g, const PassOptions&) { return loop_results(std::move(g)); },
    .level = OptimizationLevel::cleanups,
});
}  // namespace

}  // namespace tapedeck
