// The orders in which greedy placement takes buffers. No order wins everywhere, so all are tried.
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck {

PlaceOrder order_by_size(const PlaceProblem& p);      // largest first (ties: longest first): TFLite's and XLA's
PlaceOrder order_by_area(const PlaceProblem& p);      // largest bytes x steps first
PlaceOrder order_by_duration(const PlaceProblem& p);  // longest first
PlaceOrder order_by_start(
    const PlaceProblem& p);  // first born first, larger first among those: what an allocator at run time would do
PlaceOrder order_by_breadth(const PlaceProblem& p);  // by the busiest steps: all that is alive there, largest first

// Each of these by first and by best fit (beyond 20,000 buffers a sweep, then as many of them by first fit only as take a
// second together, until one is within a fiftieth of the bound), the lowest end of all; stops as soon as one meets the bound.
// Buffers that are fixed lie where they must. Where there are hints, all that can lie at theirs do, and the others are placed
// around them, unless that ends more than a hundredth of the bound higher. More than 5,000 buffers are tried in several orders
// at once if there are threads; the answer is the same.
inline constexpr std::int64_t kHintsMayCost = 100;  // the bound by this
struct GreedyOptions {
  int threads = 1;
  std::int64_t slack = 0;  // above the bound, and as good
  bool first_fit_only = false;
  bool hints = true;     // false: they are not looked at
  SearchStop stop = {};  // of all attempts but one, if there are more than 5,000 buffers
};
Attempt place_greedily(const PlaceProblem& p, const GreedyOptions& options = {});

// Largest first again and again, cut short where something would not end below the best: that goes first from then on. While
// the best is a 250th above the bound, for instances of at most 1,500 buffers, whose attempts are cheap; `attempts` of them at
// most.
void place_with_first(const PlaceProblem& p, int attempts, Attempt* best);

// The parts of it, for those who want something else of them. `take` is given each attempt, and says from what end on the next
// may give up.
void each_greedy_attempt(const PlaceProblem& p, const Chunks& chunks, const std::vector<std::int64_t>& given,
                         const GreedyOptions& options, const std::function<std::int64_t(Attempt&&)>& take);
bool has_hints(const PlaceProblem& p);
Attempt place_at_hints(const PlaceProblem& p);
// Down to an end, with as few as possible moved from their hints, if it finds how.
void move_few(const PlaceProblem& p, std::int64_t end, Attempt* kept, const SearchStop& stop = {});
std::vector<std::int64_t> fixed_offsets(const PlaceProblem& p);  // by buffer; -1: not fixed

Offsets to_offsets(const PlaceProblem& p, const Attempt& best, std::size_t n_buffers);

}  // namespace tapedeck
