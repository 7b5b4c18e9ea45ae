// Whether graphs are the same program. One walk goes through the graphs side by side and hands each difference to the caller,
// who says whether the difference is allowed: sizes, constants, operands that are equal in another way.
//
//     %h: f32[40] = reshape(%x) {shape=[40]}     |     %h: f32[60] = reshape(%x) {shape=[60]}
//
// differs in one attribute (field `shape`) and in one type (result 0). Names, notes and order edges are no differences.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <span>

namespace tapedeck TAPEDECK_API {

// One of the graphs, and in it the node that is compared; kNone where the graphs differ as a whole.
struct ProgramSide {
  const Graph* graph = nullptr;
  NodeId id = kNone;
  std::span<const std::int32_t> value_classes =
      {};  // by value: operands of one class are the same; empty: each is its own class

  const Node& node() const { return graph->nodes[id]; }
};

struct ProgramDifference {
  enum class Kind : std::uint8_t {
    // of nodes
    op,
    operand_count,
    result_count,
    operand_type,  // index: the operand
    operand,       // index: the operand, which is another value
    literal,       // the bytes of a constant, or its type
    field,         // field: the attribute; null where one node has attributes and the other has none
    result_type,   // index: the result
    region,        // index: the region
    // of graphs
    node_count,
    updates,
    inputs,  // their number
    state,   // their number
    outputs,
    output_names,
  };

  Kind kind = Kind::op;
  std::int32_t index = kNone;
  const Field* field = nullptr;
  std::span<const ProgramSide> sides;
  std::size_t other = 1;  // the first of the sides that differs from sides[0]

  const ProgramSide& first() const { return sides[0]; }
  const ProgramSide& second() const { return sides[other]; }
};

// Returns whether the difference is allowed, or throws. A difference that is not allowed ends the walk.
using AllowDifference = std::function<bool(const ProgramDifference&)>;

// Whether the nodes of all sides compute the same, in the order of the kinds above. After an allowed difference in op or in the
// number of operands or results the nodes are not compared further. Regions are compared by their text (compare_nodes.h).
// REQUIRES: at least one side.
bool same_node(std::span<const ProgramSide> sides, const AllowDifference& allow);

// Whether all graphs are the same program: first the graphs as a whole, then their nodes in order, as far as all graphs have
// nodes. Types of inputs and state are compared where nodes read them. REQUIRES: at least one graph. O(nodes * graphs), plus
// the bytes of constants.
bool same_program(std::span<const Graph* const> graphs, const AllowDifference& allow);

}  // namespace TAPEDECK_API
