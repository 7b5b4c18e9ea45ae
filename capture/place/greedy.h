// The orders in which greedy placement takes buffers. No order wins everywhere, so all are tried.
#pragma once

#include <tapedeck/capture/place/fit.h>

#include <cstdint>

namespace tapedeck {

PlaceOrder order_by_size(const PlaceProblem& p);      // largest first (ties: longest first): TFLite's and XLA's
PlaceOrder order_by_area(const PlaceProblem& p);      // largest bytes x steps first
PlaceOrder order_by_duration(const PlaceProblem& p);  // longest first
PlaceOrder order_by_start(const PlaceProblem& p);     // first born first, larger first among those: what an allocator at run time would do
PlaceOrder order_by_breadth(const PlaceProblem& p);   // by the busiest steps: all that is alive there, largest first

// Each of these by first and by best fit, the lowest end of all; stops as soon as one meets the bound.
Attempt place_greedily(const PlaceProblem& p);

Offsets to_offsets(const PlaceProblem& p, const Attempt& best, std::size_t n_buffers);

}  // namespace tapedeck
