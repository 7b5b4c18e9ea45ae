// MXNet's mirroring: every value of the forward part is made again for backward, once, unless its op is on a short list of ops
// that are not worth it. The first rule that fits a node decides:
//
//     it draws random numbers (dropout)                                   no
//     it lies in a checkpoint region: the user's mark (`force_mirroring`)  yes
//     a convolution, a product of matrices, attention                     no
//     a join of tensors (concat, pad)                                     no
//     a loss                                                              no
//     anything else                                                       yes
//
//     %h = exp(%x); %y = tanh(%h); ... ; %g = mul(%d, %h)   becomes   ... ; %9 = exp(%x) [of=%h]; %g = mul(%d, %9)
//
// The rule looks at neither bytes nor time, so it may free little or nothing; a plan takes it only where a budget needs it and
// it fits. Traits stand for MXNet's list of names.
#include <tapedeck/capture/planner/rematerialize/forward_part.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

// A loss is a number, or one for each row of what it judges: its kernel works in full precision and folds its operand.
bool is_loss(const Graph& graph, const Node& node) {
  if (!node.op->is(kFullPrecision) || node.op->is(kElementwise) || node.n_inputs < 2 || node.n_outputs != 1) return false;
  return graph.values[node.first_output].type.shape.rank < graph.values[graph.inputs(node)[0]].type.shape.rank;
}

bool is_mirrored(const Facts& facts, NodeId n) {
  if (!may_run_again(facts, n)) return false;
  const Node& node = facts.graph->nodes[n];
  if (node.op->is(kRandom)) return false;
  if (node.origin.region >= 0) return true;
  return !node.op->is(kLowPrecision) && !node.op->part && !is_loss(*facts.graph, node);
}

Choices choose_mirror(const Facts& facts, const Watch& watch) {
  std::vector<char> mirrored(facts.graph->nodes.size(), 0);
  for (NodeId n = 0; n < facts.graph->node_count(); ++n) mirrored[n] = is_mirrored(facts, n);
  return choose_one_more_run(facts, watch, mirrored, [&](NodeId n, NodeId stage) {
    const Node& node = facts.graph->nodes[n];
    return fmt::format("{}, so it runs again before `{}`",
                       node.origin.region >= 0 ? fmt::format("checkpoint region {} asks for it", node.origin.region)
                                               : fmt::format("the mirror rule excepts no op like {}", node.op->name),
                       facts.graph->node_text(stage));
  });
}

const Strategy mirror_strategy = register_strategy({
    .name = "mirror",
    .doc = "recomputes, once, all forward values but random ones, products, convolutions, joins and losses (MXNet's rule)",
    .choose = choose_mirror,
    .in_auto = InAuto::finished,
    .reads_costs = false,
});

}  // namespace

}  // namespace tapedeck
