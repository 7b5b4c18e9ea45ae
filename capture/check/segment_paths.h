// Which segments have a path to which: what check_order() asks. Its own file so that a test can hold it against every pair
// there is.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

// Two ways to know, since all pairs would be a square: a short look that proves nearly every path a sound plan has and never
// errs when it says there is one, and a bit for each pair of so many sources and all segments, for what the short look leaves
// open.
class Reach {
 public:
  // REQUIRES: the successors of each segment are later ones, ascending. `segments` outlives this. O(segments + edges).
  explicit Reach(const std::vector<Segment>& segments);

  // True: there is a path. False: perhaps. O(1) in what is mostly a chain and for edges, and bounded in everything else.
  bool finds_path(std::int32_t from, std::int32_t to) const;

  // How many sources cover() takes at once, so that its memory is bounded.
  std::size_t width() const;

  // From here on has_path() knows of these sources alone. O((segments + edges) * sources / 64).
  void cover(std::span<const std::int32_t> sources);
  bool covers(std::int32_t s) const { return bit_of_[s] != kNotCovered; }

  // Is there a path? A segment has one to itself. REQUIRES: covers(from).
  bool has_path(std::int32_t from, std::int32_t to) const;

 private:
  static constexpr std::int32_t kNotCovered = -1;

  // Is `from` on the way that leads from `to` back over latest predecessors?
  bool leads_straight(std::int32_t from, std::int32_t to) const;

  const std::vector<Segment>& segments_;
  std::vector<std::int32_t> start_,
      end_;                           // by segment: what the tree of latest predecessors numbers it and all that hang on it
  std::vector<std::int32_t> bit_of_;  // by segment: its bit, if it is covered
  std::size_t words_ = 0;             // of a row
  std::vector<std::uint64_t> bits_;   // a row by segment: which covered ones have a path to it
};

}  // namespace tapedeck
