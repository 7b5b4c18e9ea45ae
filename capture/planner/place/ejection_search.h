// Local search for a lower end than the greedy orders give. The search sets a target below the end of the best placement, and
// takes out the buffers that reach above it. It puts them back one by one, at the offset where the buffers in the way weigh
// least, and takes out those buffers in turn. A buffer that was hard to put back weighs more from then on, so that others give
// way the next time. The method follows the ejection pools of Nagata and Braysy for vehicle routing (2009), and the breakout
// weights of local search for constraints (Morris, 1993). Local search over orders, as in TVM, needs a whole placement for
// every step.
//
//     end of the best  - - - - - - - - +-----+ - - -
//     target           ----------------| c   |------     c reaches above the target: it is taken out, and put back lower
//                        +--------+    +-----+
//                        | b      |                      if b is in the way there, b is taken out, and put back next
//                        +--------+
#pragma once

#include <tapedeck/capture/planner/place/greedy_attempt.h>
#include <tapedeck/capture/planner/place/neighbours.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

// The search. Not thread safe; `p` must outlive it. It holds 8 bytes for every pair of buffers that are alive together.
class Climber {
 public:
  Climber(const PlaceProblem& p, std::uint64_t seed);

  // False if the pairs are too many to hold (Neighbours::kMostPairs). The search then changes nothing.
  bool is_able() const { return near_.complete(); }

  // Lowers the end of *best, a complete placement of p, as far as `work` examined buffers allow. Returns true if the end is
  // lower now. A later call continues this search. Equal calls give equal answers, unless `stop` stops them. O(work log work).
  bool climb(std::int64_t work, Attempt* best, const SearchStop& stop = {});

  // As climb(), for one target. Returns true if *best ends at the target or lower now. Weights decide which buffers stay; the
  // default weight is 1.
  bool reach(std::int64_t target, std::int64_t work, Attempt* best, const SearchStop& stop = {});
  void raise_lowest(std::int64_t end) { lowest_ = std::max(lowest_, end); }  // the search looks for no end below `end`
  void weigh(std::int32_t i, std::int64_t weight) { weight_[i] = std::max(weight_[i], weight); }

 private:
  struct Edge {
    std::int64_t at, weight;
  };
  // Edges of buffers in the way of one buffer, ascending. The list has room for all; `count` are in it.
  struct Edges {
    std::vector<Edge> list;
    std::size_t count = 0;
  };
  // An edge of each buffer that is placed: ascending pairs of its place and the buffer.
  using AllEdges = std::vector<std::pair<std::int64_t, std::int32_t>>;
  enum class Outcome { found, failed, paused };

  std::int64_t first_step(const Attempt& best) const;
  void set_target(std::int64_t target, const Attempt& best);
  Outcome reach_target(std::int64_t* work, const SearchStop& stop);
  bool put_back(std::int32_t i);
  void gather_edges(std::int32_t i);
  void pick_near(const AllEdges& all, Edges* near) const;
  void sort_edges(Edges* edges);
  std::int64_t find_cheapest(const Tenant& b);
  void take_out(std::int32_t i);
  void lay(std::int32_t i, std::int64_t offset);
  void keep(Attempt* best) const;
  std::uint32_t random_below(std::uint32_t n);

  const PlaceProblem& p_;
  const Neighbours near_;
  std::uint64_t random_;
  std::int64_t lowest_;    // no placement ends lower: the bound, or the end of a fixed buffer
  std::int64_t step_ = 0;  // the distance from the best end down to the target
  std::int64_t patience_;  // the work that one target may take
  std::int64_t left_ = 0;  // the work that is left for the current target
  bool has_target_ = false;
  std::int64_t target_ = 0;
  std::vector<std::int64_t> offset_;  // by buffer; -1: the buffer is taken out
  std::vector<std::int32_t> out_;
  std::vector<std::int64_t> weight_;
  Edges starts_, ends_;       // the starts and ends of the buffers in the way of one buffer
  std::vector<Edge> sorted_;  // scratch of sort_edges()
  std::vector<std::int32_t> buckets_;
  // The edges of all buffers are kept in order if most buffers are alive together; then those in the way need no sorting.
  bool keeps_edges_ = false;
  AllEdges all_starts_, all_ends_;
  std::vector<std::uint64_t> near_at_;  // by buffer: the value of asked_ when it was last near the buffer that is put back
  std::uint64_t asked_ = 0;
  std::int64_t cheapest_ = 0;  // the weight in the way at the offset that find_cheapest() chose
};

// Runs a new Climber once.
bool climb(const PlaceProblem& p, std::int64_t work, std::uint64_t seed, Attempt* best);

}  // namespace tapedeck
