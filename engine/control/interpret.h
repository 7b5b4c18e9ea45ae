// Runs a graph eagerly, without a plan: one node after another, each through the usual dispatch. Every value has its own
// memory (or is a view, as in eager code), which is freed after the last node that reads the value. Tests compare replays
// with the interpreter. Loops and branches outside of a plan run by it, and passes use it to compute a part of a graph.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Interpreted {
  std::vector<Tensor> outputs;  // parallel to the outputs of the graph; may share bytes with `given`
  std::vector<Tensor> updates;  // the new state values, parallel to the updates of the graph
};

// Runs `graph`. `given` holds its inputs and then its state. Nothing is recorded on any tape. Values that are computed from
// an abstract tensor are abstract. The only checks of types are those of the ops, so a region may run on other sizes than
// those of its recording (attributes stay the same). Throws the errors of the ops, and ExecutionError for an abstract
// constant. The cost is that of the ops, with one dispatch for each node.
Interpreted interpret(const Graph& graph, std::span<const Tensor> given);

// Runs one node of `graph` on these operands, as interpret() does, and returns its results. Nothing is recorded.
std::vector<Tensor> interpret_node(const Graph& graph, const Node& node, std::span<const Tensor> operands);

}  // namespace TAPEDECK_API
