// The orders of the graph's nodes in which values may be recomputed: the order of the program, orders that keep fewer bytes
// alive, and each of them with and without parts in what joins them.
//
//     recorded          %a %b %s %t %u       8,196 bytes alive: %a, %b and %s
//     depth first       %a %s %b %t %u       4,104 bytes alive: %b, %s and %t
//     ..., parts        the same nodes, with parts in place where the graph joins values
//     joined            an order and a choice of parts that were found together
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {

struct Planning;

struct StrategyChoices {
  const StrategyEntry* strategy = nullptr;
  Choices choices;
};

// Candidates and facts point into an order: it stays where it is.
struct Order {
  std::string name = "recorded";  // Plan::order
  Graph graph;                    // the nodes in this order
  std::vector<NodeId> nodes;      // by position: the node of the recorded order; empty: the same
  Facts facts;
  std::int64_t live_peak = 0;              // with everything kept, external bytes counted
  std::vector<StrategyChoices> chosen;     // by strategy, as candidates.h fills it in
  std::vector<StrategyChoices> for_floor;  // the same at unit costs, of the strategies that may set the floor
  std::deque<StrategyChoices> improved;    // by the strategies that improve on these; candidates point into it

  // The loops that keep less for backward than recorded (loop_intervals.h), and the regions in fewer bytes (lean_regions.h).
  std::vector<Decision> loops;
  double recorded_cost = 0;  // of keeping everything with the loops as recorded; counts only where `loops` has any

  bool has_other_ways() const { return !loops.empty(); }
  bool has_wishes(const StrategyEntry* strategy = nullptr) const;  // this strategy, or any, honours wishes of the user
};

// Facts as of options.costs and options.sharing, but for parts. `keep_all_cost` >= 0: the cost of the same nodes in another
// order. It is the cost in this order, too, so that the order of the terms does not change the sum.
std::unique_ptr<Order> make_order(std::string name, Graph graph, const PlanOptions& options, double keep_all_cost = -1);

// Adds the order, and the same order with parts in place if the sharing rules allow parts and there are any. A part cannot be
// made again, so that both have something to offer.
void add_order(std::unique_ptr<Order> order, Planning* planning);

// The stage: the recorded order of the prepared graph, and with Ordering::automatic the orders that keep fewer bytes alive.
void find_orders(Graph prepared, Planning* planning);

// The orders in which other ways of loops and leaner regions are tried: the recorded one, and the one that keeps the fewest
// bytes alive, if this is another one. Orders with parts are left out.
std::vector<const Order*> orders_to_vary(const Planning& planning);

}  // namespace tapedeck
