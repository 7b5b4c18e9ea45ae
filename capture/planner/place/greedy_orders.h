// The orders in which greedy placement takes buffers. No order wins everywhere, so place_greedily() tries all of them.
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

PlaceOrder order_by_size(const PlaceProblem& p);  // largest first, and longest first among equals: the order of TFLite and XLA
PlaceOrder order_by_area(const PlaceProblem& p);  // largest product of bytes and steps first
PlaceOrder order_by_duration(const PlaceProblem& p);  // longest first
// Earliest birth first, and largest first among equals: the order of a run-time allocator.
PlaceOrder order_by_start(const PlaceProblem& p);
// By step, the step with the most bytes alive first: all buffers alive there, largest first.
PlaceOrder order_by_breadth(const PlaceProblem& p);

// Tries each of these orders by first and by best fit, and returns the placement with the lowest end. Stops as soon as one
// placement meets the bound. Fixed buffers lie where they must.
//   - Beyond 20,000 buffers: one sweep over time, then the orders by first fit only, as many as take about a second together,
//     until one is within a fiftieth of the bound.
//   - Beyond 5,000 buffers: several orders run at once if there are threads; the answer stays the same.
//   - With hints: all buffers that can lie at their hints do, and the others are placed around them. This placement is dropped
//   if
//     it ends higher than the others by more than a hundredth of the bound.
inline constexpr std::int64_t kHintsMayCost = 100;  // the bound divided by this
struct GreedyOptions {
  int threads = 1;
  std::int64_t slack = 0;  // bytes above the bound that count as good as the bound
  bool first_fit_only = false;
  bool hints = true;     // false: hints are ignored
  SearchStop stop = {};  // stops all attempts but the first; read beyond 5,000 buffers
};
Attempt place_greedily(const PlaceProblem& p, const GreedyOptions& options = {});

// Repeats the placement by size, at most `attempts` times. Each attempt stops at the first buffer that would not end below the
// best placement, and the next attempt places that buffer first. Only for at most 1,500 buffers, whose attempts are cheap, and
// only while the best end is more than a 250th above the bound.
void place_with_first(const PlaceProblem& p, int attempts, Attempt* best);

// The steps of place_greedily(), for callers that need only some of them. each_greedy_attempt() gives each attempt to `take`,
// which returns the end from which on the next attempt may give up.
void each_greedy_attempt(const PlaceProblem& p, const Chunks& chunks, const std::vector<std::int64_t>& given,
                         const GreedyOptions& options, const std::function<std::int64_t(Attempt&&)>& take);
bool has_hints(const PlaceProblem& p);
// All buffers that can lie at their hints do; the others are placed around them by first fit, largest first.
Attempt place_at_hints(const PlaceProblem& p);
// Lowers a placement at hints to `end`, if the search finds a way, and moves few buffers from their hints.
void move_few(const PlaceProblem& p, std::int64_t end, Attempt* kept, const SearchStop& stop = {});
std::vector<std::int64_t> fixed_offsets(const PlaceProblem& p);  // by buffer; -1: not fixed

// The result of place(), for all `n_buffers` buffers that it was given, from a placement of the problem.
Offsets to_offsets(const PlaceProblem& p, const Attempt& best, std::size_t n_buffers);

}  // namespace tapedeck
