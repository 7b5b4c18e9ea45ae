// List schedules: of the items that could run next, one is taken by a simple rule. The rules of least peak look at every item
// that could run before they take one, so they take about O(items x items that could run). The other rules take linear time.
// `cancel`: once the flag is up, a rule of least peak gives the recorded order at once.
#pragma once

#include <tapedeck/capture/planner/order/order_problem.h>

#include <atomic>
#include <vector>

namespace tapedeck {

struct ListOrder {
  const char* name = "";
  ItemOrder items;
};

ItemOrder recorded_order(const OrderProblem& problem);
ItemOrder breadth_first(const OrderProblem& problem);  // of the items that could run, the one that could run first
ItemOrder depth_first(const OrderProblem& problem);    // the one that became ready last
ItemOrder on_demand(const OrderProblem& problem);      // each sink in turn, behind what it needs and has not been run yet
// Least peak memory first: of the items that do not raise the peak the one that leaves the fewest bytes alive; else the one
// that raises it least. `ahead`: bytes that the best of its successors would leave count instead, where it alone waits for it
// (the successor-aware variant).
ItemOrder least_peak_first(const OrderProblem& problem, bool ahead, const std::atomic<bool>* cancel = nullptr);
// The same rule from the end of the graph to its beginning.
ItemOrder reversed_least_peak(const OrderProblem& problem, const std::atomic<bool>* cancel = nullptr);

// All of them with their names, the recorded one first.
std::vector<ListOrder> list_orders(const OrderProblem& problem, const std::atomic<bool>* cancel = nullptr);

}  // namespace tapedeck
