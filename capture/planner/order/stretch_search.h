// Search within a stretch of an order: the items around the peak get another order, and all other items stay where they are.
// The bytes that come into the stretch and the bytes that are needed behind it are one item each. So a stretch is a problem
// like the whole, and the search of sets takes it (set_search.h).
#pragma once

#include <tapedeck/capture/planner/order/order_problem.h>

#include <atomic>
#include <cstdint>

namespace tapedeck {

struct StretchSearch {
  std::int64_t bound = 0;  // no need to go below
  std::int64_t work = 0;   // look-ups
  const std::atomic<bool>* cancel = nullptr;
};

// Lowers the peak of `order`, stretch by stretch, until none around the peak can be bettered or the work is done. Returns the
// peak; `work` of `search` is what is left of it. Deterministic.
std::int64_t search_stretches(const OrderProblem& problem, StretchSearch* search, ItemOrder* order);

}  // namespace tapedeck
