// Search over sets of items that have run (down-sets): what is alive depends on the set alone, so of all orders that lead to a
// set only the one with the lowest peak matters. With room for all sets this is the exact dynamic programming of SERENITY
// (MLSys 2020); with room for a few of each size it is a beam. Graphs fall apart by themselves where an item is before or
// behind all others: only one set has that item last.
//
// Harmless items run at once. An item is harmless if no more bytes are alive after it than before it, and no more bytes while
// it runs than some order has alive anyway. (The items between now and its later place then see no more bytes than they would
// have: more readers are done.)
#pragma once

#include <tapedeck/capture/planner/order/order_problem.h>

#include <atomic>
#include <cstdint>

namespace tapedeck {

struct OrderSearch {
  std::int64_t below = 0;  // only orders with a lower peak are wanted
  std::int64_t good = 0;   // a peak up to this is as good as any: a lower bound, or what would do
  std::int32_t width =
      0;  // sets of each size that are kept; half as many, and so on, once those not yet looked at outgrow `bytes`
  std::int32_t branches = 0;  // items tried from a set; 0: all
  std::int64_t work = 0;      // look-ups
  const std::atomic<bool>* cancel = nullptr;
  std::int64_t bytes = std::int64_t{128} << 20;  // an estimate; sets of the size that is being looked at may take as many again
};

struct OrderFound {
  ItemOrder items;  // empty if nothing was found
  std::int64_t peak = 0;
  // True if no set was left out. Then, if nothing was found, no order has a peak below `below`. If an order was found, and
  // `good` is at most the least peak, then no order has a lower peak.
  bool complete = false;
  std::int64_t work = 0;
};

// Deterministic.
OrderFound search_orders(const OrderProblem& problem, const OrderSearch& search);

}  // namespace tapedeck
