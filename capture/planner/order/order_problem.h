// The rules that an order of nodes must respect and its cost in live bytes, and nothing else of the graph.
//
// An *item* is a node that takes its turn. Windows and constants are none: they cost no bytes and stand just before their first
// reader. Items are numbered as the graph has them, so the graph's own order is 0, 1, 2, ... A *value* is a root with bytes in
// the arena (planner/facts/facts.h). Most values have one maker. A *whole*, in which parts lie (analysis/parts.h), has several:
// the makers of its parts. The maker that runs first opens the whole. For all other makers, and for the readers of the whole or
// of a part, the whole is a value that they read.
//
// Live bytes while item i runs, to the byte what layout.h counts: values made before or by i and read by i or later; its
// scratch; less the operands whose bytes it takes over because they die there (analysis/takeovers.h).
#pragma once

#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

// Lists of numbers, by number.
struct NumberLists {
  std::vector<std::int32_t> numbers, first = {0};
  std::span<const std::int32_t> operator[](std::int32_t i) const {
    return {numbers.data() + first[i], static_cast<std::size_t>(first[static_cast<std::size_t>(i) + 1] - first[i])};
  }
  void close() { first.push_back(static_cast<std::int32_t>(numbers.size())); }  // what was added to `numbers` is the next list
};

// The bytes of value `from`, an operand, may become those of value `to`, a result.
struct Handover {
  std::int32_t from = kNone, to = kNone;
};

struct OrderProblem {
  // By item.
  std::vector<NodeId> node;    // kNone: a fence between phases
  NumberLists before, behind;  // items it waits for and that wait for it: operands, order edges, effects, old bytes of states
  NumberLists reads, makes;    // values; a whole is in `reads` of all that touch it, in `makes` of none
  NumberLists opens;           // wholes that the item may be the first to write into
  std::vector<std::int64_t> scratch;  // bytes
  std::vector<Handover> handovers;
  std::vector<std::int32_t> first_handover = {0};
  // By value.
  std::vector<std::int64_t> bytes;
  std::vector<std::int32_t> maker;  // kNone: a whole
  NumberLists readers;              // last first
  NumberLists openers;              // of a whole; of others none

  std::int32_t item_count() const { return static_cast<std::int32_t>(node.size()); }
  std::int32_t value_count() const { return static_cast<std::int32_t>(bytes.size()); }
  std::span<const Handover> handovers_of(std::int32_t item) const {
    const auto i = static_cast<std::size_t>(item);
    return {handovers.data() + first_handover[i], static_cast<std::size_t>(first_handover[i + 1] - first_handover[i])};
  }
};

using ItemOrder = std::vector<std::int32_t>;

// Of a graph with or without clones: `source` names for each of its nodes the node of facts.graph that it is or repeats. New
// clones may go anywhere behind what they repeat. With split_phases the graph's stretches of one phase each stay where they
// are. O(nodes + operands).
OrderProblem order_problem(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source, bool split_phases);

// By position: the bytes alive while that item runs. O(items + reads).
std::vector<std::int64_t> live_in_order(const OrderProblem& problem, const ItemOrder& order);

// Bytes that any order has alive at once: the operands and results of some item, and all values that are made before it and
// read behind it in every order. O(items^2 / 64 + items x values); of more than 3,000 items only operands and results are
// counted.
std::int64_t order_bound(const OrderProblem& problem);

// Of the items that may make a value, the one that runs first by `position`.
inline std::int32_t first_maker(const OrderProblem& problem, std::int32_t value, const std::vector<std::int32_t>& position) {
  std::int32_t first = problem.maker[value];
  for (std::int32_t o : problem.openers[value])
    if (first == kNone || position[o] < position[first]) first = o;
  return first;
}

// The nodes of the graph in this order of items, windows and constants put in.
std::vector<NodeId> nodes_in_order(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source,
                                   const OrderProblem& problem, const ItemOrder& order);

}  // namespace tapedeck
