// Cuts a graph into pieces by a user's predicate: the nodes another backend takes, and the others.
//
//     Partition p = partition(graph, [](const Graph& g, NodeId n) { return g.nodes[n].op->is(kElementwise); });
//     run_pieces(graph, p, inputs, state, [&](const Piece& piece, const auto& given) { return mine(piece) ? ... : interpret
//     ...; });
//
// Pieces are convex: they can run one after the other, each as a whole. With exp, sin, cos, add selected apart from each
// other's way, exp->cos and sin->add never end up waiting for each other. Every node gets a level, one more than what it reads
// where exactly one of the two is selected; a piece is what is connected on one level. Order edges and the order of effects are
// kept.
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

// How a piece is run: its results, by output. By default its nodes run eagerly.
using RunPiece = std::function<std::vector<Tensor>(const Piece&, const std::vector<Tensor>& inputs)>;

// Runs the pieces in order: the same results and state as run_eagerly(graph, inputs, state).
EagerResult run_pieces(const Graph& graph, const Partition& partition, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& state, const RunPiece& run = {});

}  // namespace TAPEDECK_API
