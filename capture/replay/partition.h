// Cuts a graph into pieces by a predicate of the user: the nodes that another backend takes, and the others.
//
//     Partition p = partition(graph, [](const Graph& g, NodeId n) { return g.nodes[n].op->is(kElementwise); });
//     run_pieces(graph, p, inputs, state, [&](const Piece& piece, const auto& given) { return mine(piece) ? ... : interpret
//     ...; });
//
// A program that owns another backend calls it, with or without a plan for the nodes that the backend does not take. The
// kernels of a GPU will be such a backend.
//
// Pieces are convex: they can run one after the other, each as a whole, and no two pieces wait for each other. Every node gets
// a level: the level of the node that it reads, or one more if exactly one of the two is selected. The selected nodes of one
// level that are connected are a piece. Order edges and the order of effects are kept.
#pragma once

#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Piece {
  bool selected = false;
  std::vector<NodeId> nodes;     // of the whole graph, in order
  Graph graph;                   // the piece by itself: its inputs are `inputs`, its outputs `outputs`
  std::vector<ValueId> inputs;   // values of the whole graph that it reads: inputs, state, results of earlier pieces
  std::vector<ValueId> outputs;  // results that later pieces read, or that are returned or become state
};

struct Partition {
  std::vector<Piece> pieces;          // in an order in which they can run; pieces that are not selected are one per level
  std::vector<std::int32_t> of_node;  // index of the piece
};

using Predicate = std::function<bool(const Graph&, NodeId)>;

// O(nodes and operands); the predicate is asked once per node, in order.
Partition partition(const Graph& graph, const Predicate& selected);

// Runs a piece: returns its results, by output. By default the nodes of a piece run eagerly.
using RunPiece = std::function<std::vector<Tensor>(const Piece&, const std::vector<Tensor>& inputs)>;

// Runs the pieces in order: the same results and state as run_eagerly(graph, inputs, state).
EagerResult run_pieces(const Graph& graph, const Partition& partition, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& state, const RunPiece& run = {});

}  // namespace TAPEDECK_API
