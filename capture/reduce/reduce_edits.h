// The edits that reduce() tries: each makes a smaller graph out of a graph, or finds that it cannot.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace tapedeck {

// The stand-in for the results of a removed node.
enum class StandIn : std::uint8_t {
  operand,  // the node's first operand of the same type; if it has none, as below
  input,    // a new input (at the top), or zeros (inside a region, whose inputs are its node's operands)
};

// The graph without the nodes marked in `gone` (by node). `nested`: it is the region of a node.
std::optional<Graph> without_nodes(const Graph& graph, const std::vector<char>& gone, StandIn how, bool nested);

// Without node n, whose results no node reads: its operands are returned instead of its results. nullopt if a node reads them.
std::optional<Graph> with_operands_returned(const Graph& graph, NodeId n);

// Without node n: its results are its operand i, of another type perhaps, which all that follow take as it is if they can.
std::optional<Graph> with_operand_passed_on(const Graph& graph, NodeId n, std::int32_t i);

// Without the outputs and the updates marked.
Graph without_results(const Graph& graph, const std::vector<char>& gone_outputs, const std::vector<char>& gone_updates);

// Without unneeded things: dead nodes (not nodes with effects), inputs and state that no node reads and no update stores.
Graph trimmed(const Graph& graph);

// State value s (by index among the state) as an input. nullopt if it is updated.
std::optional<Graph> state_as_input(const Graph& graph, std::int32_t s);

// Operand i of node n replaced by the first value of its type; nullopt if it is that already.
std::optional<Graph> with_first_operand(const Graph& graph, NodeId n, std::int32_t i);

// Node n without operand i. nullopt if the op wants it or its results would change.
std::optional<Graph> without_operand(const Graph& graph, NodeId n, std::int32_t i);

// Node n replaced by the nodes of its region r, run once: a branch taken, a loop that goes round once. nullopt if types do not
// line up (a loop over slices).
std::optional<Graph> with_region_inlined(const Graph& graph, NodeId n, std::int32_t r);

// Node n with another region r.
Graph with_region(const Graph& graph, NodeId n, std::int32_t r, Graph region);

// Every dimension of size `from` made `to`, where the ops allow it; attributes that hold sizes follow.
std::optional<Graph> with_size(const Graph& graph, std::int64_t from, std::int64_t to);

// The measure that reduce() makes smaller, in this order: nodes, results, inputs and state, elements, distance of operands.
using Measure = std::array<std::int64_t, 5>;
Measure measure(const Graph& graph);

}  // namespace tapedeck
