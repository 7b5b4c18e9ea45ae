// The backward of a graph, generated from the same vjps that eager backward runs, by the same walk: gradients equal eager ones
// bit for bit. The graph given is not changed; the result holds it with backward nodes (phase=backward, twin notes, names
// "grad....") behind it, and the parts of vjps that belong into the forward pass (eager/derive_saved.h) right behind their
// twins.
//
// What is promised:
//  - a node gets backward nodes only if it lies on a way from a wrt to a target, and those only what is read in the end;
//  - gradient pieces of one value add up in reverse order of the nodes that read it, operands of one node in their order; the
//  first piece
//    is written, not added to zero;
//  - the gradient of a wrt that no target depends on is exactly zero; a target given twice counts twice; of wrts that have one
//  gradient
//    all but the first get a copy.
// Works as ccv's symbolic backward and nnvm's Gradient pass do; time and memory are linear in nodes, operands and wrts.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GraphGradientOptions {
  std::vector<ValueId> heads =
      {};                        // gradients of the targets, parallel to them, values of the graph; kNone, or none at all: ones
  bool heads_as_inputs = false;  // adds an input for every target's head, "grad.<target>", after the graph's inputs
  std::vector<GradRequest> requests = {};  // parallel to wrt: none, write (default), add
  std::vector<ValueId> add_to =
      {};  // parallel to wrt: what `add` adds to, a value of the graph; kNone: an input "grad_in.<wrt>" is added
};

struct GraphGradient {
  Graph graph;                     // outputs and updates are those of the graph given
  std::vector<ValueId> gradients;  // parallel to wrt, values of `graph`; kNone where none was requested
  std::vector<ValueId> moved;      // by value of the graph given: its number in `graph`
};

// d sum(targets * heads) / d wrt. Targets and wrts are any values of the graph: inputs, state, results; they may repeat, and be
// the same. Throws TypeError (a target, wrt or head of a type that does not fit), GradientError (an op on the way has no
// gradient: names node and call site), UsageError (numbers of no value, lists of unequal length). Safe to call from several
// threads, inside a capture too.
GraphGradient gradient(const Graph& graph, std::span<const ValueId> targets, std::span<const ValueId> wrt,
                       const GraphGradientOptions& options = {});

}  // namespace TAPEDECK_API
