// Search for a lower end than greedy orders give, by ejection: below the end of the best placement a target is set; what
// reaches above it is taken out, and put back one by one where the least is in the way, which is taken out in turn. What was
// hard to put back weighs more from then on, so that the next time others give way. After Nagata and Braysy's ejection pools
// for vehicle routing (2009) and the breakout weights of local search for constraints (Morris, 1993). Climbing over orders, as
// TVM does it, needs a whole placement for every step.
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>
#include <tapedeck/capture/planner/place/neighbours.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tapedeck {

// Not thread safe; `p` must outlive it. Holds 8 bytes for every two buffers that are alive together.
class Climber {
 public:
  Climber(const PlaceProblem& p, std::uint64_t seed);

  // Too many pairs (Neighbours::kMostPairs) to hold: it then finds nothing.
  bool is_able() const { return near_.complete(); }

  // Makes *best (a whole placement of p) end lower, if it finds how within `work` examined buffers. Whether it did. A later
  // call goes on where the last one stopped. Equal calls, equal answers, unless stopped. O(work log work).
  bool climb(std::int64_t work, Attempt* best, const SearchStop& stop = {});

  // The same for one target: whether *best ends there or lower now. What is heavy stays where it is rather than what is light
  // (1).
  bool reach(std::int64_t target, std::int64_t work, Attempt* best, const SearchStop& stop = {});
  void raise_lowest(std::int64_t end) { lowest_ = std::max(lowest_, end); }  // nothing lower is looked for
  void weigh(std::int32_t i, std::int64_t weight) { weight_[i] = std::max(weight_[i], weight); }

 private:
  struct Edge {
    std::int64_t at, weight;
  };
  enum class Outcome { found, failed, paused };

  std::int64_t first_step(const Attempt& best) const;
  void set_target(std::int64_t target, const Attempt& best);
  Outcome reach_target(std::int64_t* work, const SearchStop& stop);
  bool put_back(std::int32_t i);
  void gather_edges(std::int32_t i);
  void sort_edges(std::vector<Edge>* edges);
  std::int64_t find_cheapest(const Tenant& b);
  void take_out(std::int32_t i);
  void keep(Attempt* best) const;
  std::uint32_t random_below(std::uint32_t n);

  const PlaceProblem& p_;
  const Neighbours near_;
  std::uint64_t random_;
  std::int64_t lowest_;    // nothing can end lower: the bound, or a fixed buffer
  std::int64_t step_ = 0;  // from the best end down to the target
  std::int64_t patience_;  // work that a target is worth
  std::int64_t left_ = 0;  // of the patience
  bool has_target_ = false;
  std::int64_t target_ = 0;
  std::vector<std::int64_t> offset_;  // -1: out
  std::vector<std::int32_t> out_;
  std::vector<std::int64_t> weight_;
  std::vector<Edge> starts_, ends_;  // of what stands in the way of one buffer
  std::vector<Edge> sorted_;         // scratch of sort_edges()
  std::vector<std::int32_t> buckets_;
  std::int64_t cheapest_ = 0;  // the weight in the way of what find_cheapest() chose
};

// One call of a Climber of its own.
bool climb(const PlaceProblem& p, std::int64_t work, std::uint64_t seed, Attempt* best);

}  // namespace tapedeck
