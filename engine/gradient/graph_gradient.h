// Generates the backward of a graph. It uses the same vjps and the same walk as eager backward, so the gradients equal the
// eager ones bit for bit. The given graph is not changed. The result is a copy of it with backward nodes at the end
// (phase=backward, twin notes, names "grad...."). The calls of vjps that belong to the forward pass (eager/derive_saved.h)
// stand directly after their twins.
//
// Promises:
//   - a node gets backward nodes only if it lies on a path from a wrt to a target, and only nodes that a gradient depends on
//   stay;
//   - gradient pieces of one value add up in reverse order of the nodes that read the value, and for one node in the order of
//     its operands; the first piece is written, not added to zero;
//   - the gradient of a wrt that no target depends on is exactly zero; a target given twice counts twice; a target that depends
//     on no wrt is refused, unless allow_unreached says that it adds nothing;
//   - if several wrts have the same gradient, all but the first get a copy.
//
// The method is that of ccv's symbolic backward and of nnvm's Gradient pass. Time and memory are linear in the number of
// nodes, operands and wrts.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GraphGradientOptions {
  std::vector<ValueId> heads =
      {};  // gradients of the targets, parallel to them, as values of the graph; kNone or an empty list means ones
  bool heads_as_inputs = false;  // adds an input "grad.<target>" for each target's head, after the inputs of the graph
  std::vector<GradRequest> requests = {};  // parallel to wrt: none, write (the default) or add
  std::vector<ValueId> add_to =
      {};  // parallel to wrt: the value of the graph to which `add` adds; kNone adds an input "grad_in.<wrt>" for it
  bool allow_unreached = false;  // if false, a target that depends on no wrt is a GradientError; if true, it adds nothing
};

struct GraphGradient {
  Graph graph;                     // the outputs and updates are those of the given graph
  std::vector<ValueId> gradients;  // parallel to wrt: values of `graph`; kNone where the request is none
  std::vector<ValueId> moved;      // for each value of the given graph: its number in `graph`
};

// Computes d sum(targets * heads) / d wrt. Targets and wrts are any values of the graph: inputs, state or results. They may
// repeat, and a target may also be a wrt. No gradient flows through an op with kNoGradient (a comparison, for example), so a
// target that is computed from a wrt only through such ops counts as depending on no wrt. Throws TypeError if a target, wrt
// or head has a type that does not fit; GradientError if another op on the path has no gradient (the message names the node
// and the call site), or if a target depends on no wrt and allow_unreached is false; UsageError if a number is not a value of
// the graph or a list has the wrong length. Thread safe. May be called inside a capture.
GraphGradient gradient(const Graph& graph, std::span<const ValueId> targets, std::span<const ValueId> wrt,
                       const GraphGradientOptions& options = {});

}  // namespace TAPEDECK_API
