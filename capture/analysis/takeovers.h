// The rule of takeovers in place: which results of one node get the bytes of operands that die there.
//
//     %a dies here, %b does not          add declares that %c may be written over %a, or over %b
//     %c = add(%a, %b)                   %c gets the bytes of %a, and the arena holds %a, %b and %c as two values
//
// find_takeovers() (alias.h) lists the pairs that an op and its bytes allow. This file decides which of the pairs happen. The
// planner's counts of live bytes, its layout and its explanations all ask here. The checker has a rule of its own.
#pragma once

#include <tapedeck/capture/analysis/alias.h>
#include <tapedeck/engine/ir/graph.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

// A takeover in terms of roots.
struct RootPair {
  ValueId from = kNone;  // root of the operand
  ValueId to = kNone;    // the result
};

// The takeovers of node n that the plan may choose: both roots lie in the arena.
template <class InArena>
std::vector<RootPair> takeovers_in_arena(const Graph& graph, NodeId n, const std::vector<Window>& windows, InArena in_arena) {
  std::vector<RootPair> pairs;
  const Node& node = graph.nodes[n];
  for (const Takeover& t : find_takeovers(graph, n, windows)) {
    const RootPair pair{windows[graph.inputs(node)[t.input]].root, node.first_output + t.output};
    if (in_arena(pair.from) && in_arena(pair.to)) pairs.push_back(pair);
  }
  return pairs;
}

inline constexpr std::size_t kMostTakeovers = 64;  // pairs of one node; further pairs never happen

// Calls take(pair) for each pair that happens, in the order of `pairs`. A pair happens if can_give(pair.from) says that the
// operand gives its bytes away, if no earlier pair has taken these bytes, and if no earlier pair has served the result. `Pair`
// has the members `from` (an operand's bytes) and `to` (a result). O(pairs^2), and nodes have few pairs.
template <class Pair, class CanGive, class Take>
void take_over_in_place(std::span<const Pair> pairs, CanGive can_give, Take take) {
  std::uint64_t taken = 0;  // by pair
  for (std::size_t k = 0; k < std::min(pairs.size(), kMostTakeovers); ++k) {
    bool happens = can_give(pairs[k].from);
    for (std::size_t j = 0; j < k && happens; ++j)
      happens = !(taken >> j & 1) || (pairs[j].from != pairs[k].from && pairs[j].to != pairs[k].to);
    if (!happens) continue;
    taken |= std::uint64_t{1} << k;
    take(pairs[k]);
  }
}

}  // namespace tapedeck
