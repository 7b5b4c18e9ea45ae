// The candidates for the plan: points in a strategy's sequence of choices, each in an order of the graph's nodes. No candidate
// depends on the budget, but for those of a strategy that looks at one (solve_for_budget.h).
#pragma once

#include <tapedeck/capture/planner/orders.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/requests/effort.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace tapedeck {

// Placed when first asked (candidate_layouts.h).
struct Candidate {
  const StrategyEntry* strategy = nullptr;  // null: makes no value again, as every strategy may
  const Order* order = nullptr;
  const Choices* choices = nullptr;
  ChoicePoint point;
  double cost = 0;
  std::int64_t live_peak = 0;      // a bound on `peak`
  std::int64_t peak = -1;          // -1: not placed yet
  std::size_t number = 0;          // of candidates that are as good, the first is taken
  bool searched = false;           // for offsets, beyond greedy placement
  std::vector<NodeId> moved = {};  // its nodes, clones included, in another order; empty: in the order's
  std::int64_t only_for = -1;      // the budget that may take it; -1: every budget
  std::int64_t runs = 0;           // of all nodes: its cost at unit costs

  // Makes no value again, and every loop keeps for backward what it was recorded to keep.
  bool keeps_all() const { return strategy == nullptr && !order->has_other_ways(); }
  bool counts_for_floor() const { return !point.for_budget; }
  // Orders are looked for and compared by the strategies that every plan asks. The others choose in the orders that are found.
  bool rates_orders() const { return !strategy || strategy->in_auto == InAuto::always; }
  bool is_improved() const { return strategy && (strategy->improve || strategy->solve); }
  bool is_wish() const { return strategy && strategy->taken_for == TakenFor::wishes; }
};

StepSize size_of(const Order& order);

// Appends the candidate that keeps all in this order.
void add_keep_all(const Order& order, Planning* planning);

// Appends the points of a strategy's choices in the order, but for those that keep all. REQUIRES: `chosen` outlives the
// planning.
void add_points(const Order& order, const StrategyChoices& chosen, Planning* planning);

// Lets every strategy that the options allow choose in the orders, on all threads, and appends, for one order after the other,
// keep-all and then the points of each strategy.
// Strategies that wait for a budget choose only where the floor is looked for. Those of `auto` choose at unit costs for the
// floor, so that it does not depend on where microseconds come from, and at real costs where budgets are asked for.
void add_candidates(const std::vector<Order*>& orders, Planning* planning);

// The stage: the candidates of every order. Where the floor is looked for, order and recomputation then improve each other, and
// in the orders that promise most the strategies that improve on others begin.
void rematerialize(Planning* planning);

// The graph that the candidate stands for, its clones written out.
ClonedGraph graph_of(const Candidate& candidate);

// Of the candidates that are allowed, the first that keeps the fewest bytes alive, before anything is placed.
template <class Allowed>
const Candidate& least_live(const std::deque<Candidate>& candidates, Allowed allowed) {
  const Candidate* least = nullptr;
  for (const Candidate& c : candidates)
    if (allowed(c) && (!least || c.live_peak < least->live_peak)) least = &c;
  return *least;
}

}  // namespace tapedeck
