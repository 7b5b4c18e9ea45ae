// Inference, interpretation and gradient of fused nodes.
//
//     %y = fused(%x, %b) (%x: f32[8,4], %b: f32[4]) {        becomes, in a gradient,        %t = add(%x, %b)
//       %t = add(%x, %b)                                                                    %y = tanh(%t)
//       %y = tanh(%t)                                                                       %d = tanh_grad(%y, %dy)   ...
//       return %y
//     }
#include <tapedeck/engine/ops/fused.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ir/extract.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ir/site_note.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

bool can_be_fused(const Node& node) {
  return node.op->is(kElementwise) && !node.op->is(kEffect) && node.n_outputs == 1 && node.n_regions == 0 &&
         node.n_inputs > 0 && node.n_inputs <= kMostFusedOperands;
}

namespace {

// The pairs in the order in which a plan tries them: 8 results and 8 operands, as many as it looks at (analysis/takeovers.h).
std::vector<InplacePair> any_result_over_any_operand() {
  constexpr std::int8_t most = 8;
  std::vector<InplacePair> pairs;
  for (std::int8_t output = 0; output < most; ++output)
    for (std::int8_t input = 0; input < most; ++input) pairs.push_back({output, input});
  return pairs;
}

void require_operands(const Infer& f, const Graph& region) {
  if (static_cast<std::size_t>(region.n_inputs) != f.inputs.size())
    f.fail(fmt::format("{} operands for a region with {} inputs", f.inputs.size(), region.n_inputs));
  for (std::size_t i = 0; i < f.inputs.size(); ++i)
    if (f.inputs[i] != region.values[i].type)
      f.fail(fmt::format("operand {} is {}, the region wants {}", i, to_string(f.inputs[i]), to_string(region.values[i].type)));
}

void require_chain(const Infer& f, const Graph& region) {
  if (region.nodes.empty() || region.nodes.size() > static_cast<std::size_t>(kMostFusedNodes))
    f.fail(fmt::format("the region holds {} nodes, not 1 to {}", region.nodes.size(), kMostFusedNodes));
  const Shape& shape = region.values[region.nodes[0].first_output].type.shape;
  for (const Node& node : region.nodes) {
    const auto n = static_cast<NodeId>(&node - region.nodes.data());
    if (!can_be_fused(node) || node.n_after > 0) f.fail(fmt::format("the region cannot hold `{}`", region.node_text(n)));
    if (region.values[node.first_output].type.shape != shape)
      f.fail(fmt::format("`{}` has another shape than the nodes before it", region.node_text(n)));
  }
}

void require_results(const Infer& f, const Graph& region) {
  if (region.outputs.empty()) f.fail("the region returns nothing");
  for (std::size_t k = 0; k < region.outputs.size(); ++k) {
    if (region.values[region.outputs[k]].node == kNone) f.fail("the region returns what it was given");
    for (std::size_t j = 0; j < k; ++j)
      if (region.outputs[j] == region.outputs[k]) f.fail("the region returns a value twice");
  }
}

void infer_fused(Infer& f) {
  const Graph& region = *f.regions[0];
  require_operands(f, region);
  require_chain(f, region);
  require_results(f, region);
  f.outputs.clear();
  for (ValueId v : region.outputs) f.outputs.push_back(region.values[v].type);
}

std::vector<Tensor> run_fused(std::span<const Region> regions, std::span<const Tensor> inputs, const void*,
                              std::span<const Type>, Site) {
  return interpret(*regions[0], inputs).outputs;
}

// Calls the ops of the graph one by one, as an author would: they are recorded, and have gradients of their own.
std::vector<Tensor> call_nodes(const Graph& g, std::span<const Tensor> inputs, std::span<const ValueId> results, Site site) {
  std::vector<Tensor> values(g.values.size());
  std::copy(inputs.begin(), inputs.end(), values.begin());
  const std::vector<bool> needed = needed_values(g, {}, results);
  for (const Node& node : g.nodes) {
    const auto made = g.output_values(node);
    const auto is_needed = [&](const Value& v) { return needed[static_cast<std::size_t>(&v - g.values.data())]; };
    if (std::none_of(made.begin(), made.end(), is_needed)) continue;
    std::vector<Tensor> operands;
    for (ValueId v : g.inputs(node)) operands.push_back(values[v]);
    std::vector<Tensor> called = g.literal(node) ? std::vector<Tensor>{constant_tensor(g, node)}
                                                 : apply_all(*node.op, operands, g.attributes(node), site);
    std::move(called.begin(), called.end(), values.begin() + node.first_output);
  }
  std::vector<Tensor> found;
  for (ValueId v : results) found.push_back(values[v]);
  return found;
}

void vjp_fused(Vjp& b) {
  const Graph& region = *b.regions[0];
  std::vector<ValueId> targets, wrt;
  std::vector<Tensor> operands = b.xs;
  for (std::size_t k = 0; k < region.outputs.size(); ++k) {
    if (!is_floating(b.ys[k].dtype())) continue;
    targets.push_back(region.outputs[k]);
    operands.push_back(b.dys[k]);
  }
  for (int i = 0; i < b.n_inputs(); ++i)
    if (b.needs(i) && is_floating(b.x(i).dtype())) wrt.push_back(i);
  const GraphGradient made = gradient(region, targets, wrt, {.heads_as_inputs = true, .allow_unreached = true});
  const std::vector<Tensor> found = call_nodes(made.graph, operands, made.gradients, b.site());
  for (std::size_t k = 0; k < wrt.size(); ++k) b.dx(wrt[k], found[k]);
}

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/fused.h>
