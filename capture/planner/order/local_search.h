// Local search on the exact peak. Of the values that are alive at the peak without being used there, one is made later, with
// all items that depend on it; or its last readers run earlier, with all items that they need. A move is kept if it lowers the
// peak, or the number of items at it.
#pragma once

#include <tapedeck/capture/planner/order/order_problem.h>

#include <atomic>
#include <cstdint>

namespace tapedeck {

struct OrderClimb {
  std::int64_t bound = 0;  // no need to go below
  std::int64_t work = 0;   // items looked at
  const std::atomic<bool>* cancel = nullptr;
};

struct Climbed {
  ItemOrder items;
  std::int64_t peak = 0;
  std::int64_t work = 0;  // that it took
};

// Never above the peak of `start`. Deterministic. A move costs the items that it passes over.
Climbed climb_order(const OrderProblem& problem, const ItemOrder& start, const OrderClimb& climb);

}  // namespace tapedeck
