// Everything that the planner knows about a graph before it decides anything: where the bytes of each value belong, and which
// values each node reads and makes, at which cost. Windows count as their roots: a node that reads a window reads the bytes of
// the root.
#pragma once

#include <tapedeck/capture/analysis/alias.h>
#include <tapedeck/capture/analysis/parts.h>
#include <tapedeck/capture/analysis/takeovers.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/sharing.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct CostModel;

// The buffer a value belongs in, whatever the plan. Windows share their root's.
struct Home {
  Where where = Where::arena;
  std::int32_t slot = kNone;
};

struct Facts {
  const Graph* graph = nullptr;         // after insert_copies: every update's source can be written straight into its state
  std::vector<double> cost;             // by node; a window costs nothing, a join what it has to copy
  std::vector<std::int64_t> workspace;  // by node
  std::vector<Window> windows;          // by value
  std::vector<Home> homes;              // by value: of its root
  std::vector<Type> output_slots;
  std::vector<std::int64_t> bytes;        // by value: arena bytes; 0 for windows and for values that live elsewhere
  std::vector<NodeId> overwritten;        // by value: the node that overwrites this state value's bytes; kNever if none does
  std::vector<std::int64_t> clone_extra;  // by node: arena bytes of a clone's outputs whose originals live elsewhere
  std::int64_t external_bytes = 0;
  double keep_all_cost = 0;
  bool has_parts = false;           // some values are parts of the value that joins them
  std::string cost_source;          // as Plan::costs
  std::int32_t measured_nodes = 0;  // whose cost was measured

  static constexpr NodeId kNever = std::numeric_limits<NodeId>::max();
  static constexpr NodeId kNear = 2;

  bool in_arena(ValueId root) const { return homes[root].where == Where::arena; }
  bool is_window(NodeId n) const { return window_node[n] != 0; }
  // Nodes whose results have bytes of their own in every run of them: the others are not made again.
  bool can_repeat(NodeId n) const { return !fixed_node[n] && !is_kept(n); }
  // A wish of the user keeps the results of n: it runs once, in its own place.
  bool is_kept(NodeId n) const { return !kept_node.empty() && kept_node[n]; }
  // Whether a copy of `root` may be kept from stage `from`, which makes or reads it, to its next reader in stage `to`. False:
  // the user wishes that it is made again for that reader.
  bool may_keep(ValueId root, NodeId from, NodeId to) const {
    return given_up.empty() || !given_up[root] || !wishes_apart(from, to);
  }
  // Whether wishes to compute again count between these stages: between forward and a later phase; in a graph without
  // backward, across more than two stages.
  bool wishes_apart(NodeId from, NodeId to) const {
    return runs_later.empty() ? to - from > kNear : !runs_later[from] && runs_later[to];
  }
  std::span<const ValueId> reads(NodeId n) const { return list(read_lists, read_first, n); }  // distinct roots
  // Roots that n is the first to write: its outputs, but none for a window. The first node that writes a part makes the whole;
  // a node that writes another part later counts as a reader of the whole.
  std::span<const ValueId> makes(NodeId n) const {
    return {made.data() + made_first[n], static_cast<std::size_t>(made_first[n + 1] - made_first[n])};
  }
  std::span<const RootPair> takeovers(NodeId n) const {
    return {pairs.data() + pair_first[n], static_cast<std::size_t>(pair_first[n + 1] - pair_first[n])};
  }

  Sharing sharing = Sharing::all;
  std::vector<double> kernel_cost;  // by node, were every node to run its kernel
  std::vector<Home> own_homes;      // by value, had it bytes of its own
  std::vector<char> window_node;    // by node: its result is a view that needs no bytes
  std::vector<char> fixed_node;     // by node: it writes or joins parts, or it or a region of it has an effect
  // What wishes say (planner/honour_wishes.h); empty: no wish says it.
  std::vector<char> kept_node;   // by node
  std::vector<char> given_up;    // by root: it is to be computed again
  std::vector<char> runs_later;  // by node: in a phase after forward; empty too if the graph has no backward
  std::vector<ValueId> read_lists, made;
  std::vector<RootPair> pairs;
  std::vector<std::int32_t> read_first, made_first, pair_first;

 private:
  static std::span<const ValueId> list(const std::vector<ValueId>& items, const std::vector<std::int32_t>& first, NodeId n) {
    return {items.data() + first[n], static_cast<std::size_t>(first[n + 1] - first[n])};
  }
};

// Costs by `costs`, or by the built-in estimates. Of the sharing rules windows and in_place show here; parts are chosen later
// (join_choice.h). REQUIRES: `graph` outlives the result and is in the form that insert_copies() leaves. `workspaces`: bytes by
// node. The form without them takes those of the kernels; it is for graphs whose nodes have no regions.
Facts collect_facts(const Graph& graph, std::vector<std::int64_t> workspaces, const CostModel* costs, Sharing sharing);
Facts collect_facts(const Graph& graph, const CostModel* costs = nullptr, Sharing sharing = Sharing::all);

// Facts with these parts in place. REQUIRES: `parts` are from find_parts().
void use_parts(const std::vector<Window>& parts, const Readers& readers, Facts* facts);

}  // namespace TAPEDECK_API
