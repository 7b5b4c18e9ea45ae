// A lower bound on the cost of every plan that fits a budget, whatever its order of nodes and its strategy.
//
//     %a = f(%x)          %a and %b are made before %k and read after it, so while %k runs for the first time,
//     %b = f(%a)          each of them is alive, or its maker runs again later.
//     %k = f(%b)
//     %c = f(%k, %b)      The budget has room for one of the two: the cheaper maker is paid once more.
//     %d = f(%c, %a)
//
// The proof. Take a plan that fits the budget, and one node k of the graph. A value straddles k if its maker is an ancestor of
// k (k cannot run before the maker has run) and one of its readers is a descendant of k (no run of the reader comes before the
// first run of k). Look at the first run of k.
//
//   - If the maker of a straddling value runs once in the whole plan, then it runs before k. The reader runs after k and reads
//     the only copy there is. So this copy is alive while k runs, and no result of k takes over its bytes.
//   - If the maker runs more than once, the plan pays the cost of the maker at least once beyond keep-all. Then none of the
//     bytes of the maker's results need be alive while k runs, except for the results that k reads: k reads some copy of them,
//     and a result of k may be written over this copy.
//   - The operands and results of k and its workspace are alive while k runs. Of the operands that straddle nothing, at most
//     those are not counted that a result of k may be written over.
//
//   - If no copy of a straddling value is alive at the first run of k, then its maker runs again after that. It then reads its
//     operands, and the same holds for each of them: a copy is alive while k runs, or the maker of the operand runs again. So
//     making a value again also costs the bytes of operands that are needed for nothing else, or the cost of their makers
//     (charged_knapsack.h).
//
// Live bytes are at most the budget. So the makers that run more than once cover the bytes of all of this beyond the budget.
// Each maker is paid once for all of its straddling results. The least cost of such a choice is a knapsack problem
// (least_cover.h). The bound is the largest of these costs over all nodes k, because the proof holds for each of them. The
// fractional knapsack, which may also pay a part of one maker, never costs more and is quick; the nodes k that ask for the most
// by it are asked again with whole makers, and with the operands that they need. A node that cannot run again is never paid: if
// the bytes that cannot be given up exceed the budget by themselves, no plan fits.
//
// Values whose bytes lie in state, outputs or constants are part of the external bytes, and are not counted again. Windows
// count as their roots, and a window is no reader. Where values are parts of the value that joins them (analysis/parts.h), the
// bound holds for plans with the same parts.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/solvers/cancel_and_progress.h>
#include <tapedeck/capture/planner/solvers/charged_knapsack.h>
#include <tapedeck/capture/planner/solvers/least_cover.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

struct CostBound {
  double extra_us = 0;  // every plan that fits costs at least this much more than keep-all
  NodeId at = kNone;    // the node that asks for it; kNone: no node asks for anything
  // False: no plan fits, because node `at` needs `stuck_bytes`, external bytes counted, that no plan can give up.
  bool may_fit = true;
  std::int64_t stuck_bytes = 0;
};

// Prepares once what all budgets have in common.
class CostBounds {
 public:
  CostBounds(const Facts& facts, const Watch& watch);  // both outlive it

  // `budget`: bytes, external bytes counted. A function of facts and budget alone.
  CostBound at(std::int64_t budget);

 private:
  // The bytes at the first run of one node.
  struct Load {
    std::int64_t stuck = 0;        // cannot be given up
    std::int64_t movable = 0;      // the bytes of `items`
    std::vector<CoverItem> items;  // makers whose straddling results may be given up
  };

  // A node, the extra cost that it asks for, and the cost of the last of these bytes.
  struct Asking {
    NodeId node = kNone;
    double cost = 0, per_byte = 0;
  };

  // Lists of nodes, or of roots, by node.
  struct Lists {
    std::vector<std::int32_t> first{0};
    std::vector<std::int32_t> items;
    std::span<const std::int32_t> of(NodeId n) const {
      return {items.data() + first[n], static_cast<std::size_t>(first[n + 1] - first[n])};
    }
  };

  // Marks that are taken back all at once.
  struct Marks {
    std::vector<std::int32_t> set_in;
    std::int32_t round = 0;
    bool has(std::int32_t i) const { return set_in[i] == round; }
    bool set(std::int32_t i) { return set_in[i] != round && (set_in[i] = round, true); }
  };

  // What a walk from one node writes on.
  struct Walk {
    explicit Walk(const Facts& facts);
    std::vector<NodeId> above;         // the ancestors
    std::vector<NodeId> nodes;         // met, the last ones not yet left
    std::vector<ValueId> straddling;   // roots
    std::vector<std::int64_t> given;   // by node: the bytes of its results that may be given up
    std::vector<NodeId> givers;        // nodes with an entry in `given`
    std::vector<std::int32_t> number;  // by node: its number in the charged knapsack
    Marks node_seen, written, found, own, gives;
  };

  void list_neighbours();
  void list_roots();
  void choose_nodes();
  void go_up(NodeId k, Walk* walk) const;
  void go_down(NodeId k, Walk* walk) const;
  std::int64_t own_bytes(NodeId k, Walk* walk) const;
  void weigh(ValueId root, NodeId k, Walk* walk, Load* load) const;
  void load_at(NodeId k, Walk* walk, Load* load) const;
  void take_most(std::int64_t room, std::vector<Asking> asking, Walk* walk, Load* load, CostBound* bound) const;
  double whole_cost(std::int64_t room, Load* load) const;
  bool is_charged(ValueId root, const Walk& walk) const;
  double charged_cost(NodeId k, double guess, std::int64_t room, Walk* walk, Load* load, ChargedKnapsack* knapsack) const;

  const Facts& facts_;
  const Watch& watch_;
  Lists operands_, readers_;  // by node: the nodes that make what it reads, and that read what it makes
  Lists writes_, needs_;      // by node: the roots in the arena that it writes, and that it reads and is no window on
  std::vector<std::int32_t> needed_by_;  // by root: the number of nodes that need it
  std::vector<NodeId> nodes_;            // that are looked at
  std::vector<std::int64_t> most_;  // by entry of nodes_: the most bytes in the arena that its first run may need, once known
};

}  // namespace tapedeck
