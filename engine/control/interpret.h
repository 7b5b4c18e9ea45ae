// Runs a graph eagerly: its nodes one by one through dispatch, unplanned. Every value has memory of its own (or is a view, as
// in eager code) and goes after its last reader. The oracle of replay, what loops and branches run by outside of a plan, and
// how an optimizing pass evaluates a piece of a graph.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Interpreted {
  std::vector<Tensor> outputs;  // by output of the graph; may share bytes with `given`
  std::vector<Tensor> updates;  // by update
};

// `given` holds inputs, then state. Nothing is recorded, whatever tape is open. If something given is abstract, so is what is
// computed from it. Types are not checked against the graph's beyond what each op demands, so that a region may run on other
// sizes than it was recorded with (attributes stay as they are). Throws what the ops throw; ExecutionError for an abstract
// constant. Cost: that of the ops, one dispatch per node.
Interpreted interpret(const Graph& graph, std::span<const Tensor> given);

}  // namespace TAPEDECK_API
