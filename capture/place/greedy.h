// The orders in which greedy placement takes buffers. No order wins everywhere, so all are tried.
#pragma once

#include <tapedeck/capture/place/fit.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

PlaceOrder order_by_size(const PlaceProblem& p);      // largest first (ties: longest first): TFLite's and XLA's
PlaceOrder order_by_area(const PlaceProblem& p);      // largest bytes x steps first
PlaceOrder order_by_duration(const PlaceProblem& p);  // longest first
PlaceOrder order_by_start(const PlaceProblem& p);     // first born first, larger first among those: what an allocator at run time would do
PlaceOrder order_by_breadth(const PlaceProblem& p);   // by the busiest steps: all that is alive there, largest first

// Each of these by first and by best fit (beyond 20,000 buffers by first fit only, until one is within a fiftieth of the bound), the lowest end of all; stops as soon as one meets the bound. Buffers that are fixed lie where they
// must. Where there are hints, all that can lie at theirs do, unless another attempt ends lower.
Attempt place_greedily(const PlaceProblem& p);

// The parts of it, for those who want something else of them. `take` is given each attempt, and says from what end on the next may give up.
void each_greedy_attempt(const PlaceProblem& p, const Chunks& chunks, const std::vector<std::int64_t>& given,
                         const std::function<std::int64_t(Attempt&&)>& take);
Attempt place_at_hints(const PlaceProblem& p);
std::vector<std::int64_t> fixed_offsets(const PlaceProblem& p);   // by buffer; -1: not fixed

Offsets to_offsets(const PlaceProblem& p, const Attempt& best, std::size_t n_buffers);

}  // namespace tapedeck
