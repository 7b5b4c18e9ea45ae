// Which segments have a path to which; check_order() asks. It has its own file, so that a test can compare it with all pairs.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

// All pairs would be a square, so there are two ways to know. A short look proves nearly every path of a sound plan, and is
// never wrong when it says that there is a path. For questions that stay open there is a bit for each pair of a covered source
// and a segment.
class Reach {
 public:
  // REQUIRES: the successors of each segment are later ones, ascending. `segments` outlives this. O(segments + edges).
  explicit Reach(const std::vector<Segment>& segments);

  // True: there is a path. False: there may be one. O(1) for edges and for graphs that are mostly a chain, bounded otherwise.
  bool finds_path(std::int32_t from, std::int32_t to) const;

  // The number of sources that cover() takes at once, so that its memory is bounded.
  std::size_t width() const;

  // From now on has_path() answers for these sources alone. O((segments + edges) * sources / 64).
  void cover(std::span<const std::int32_t> sources);
  bool covers(std::int32_t s) const { return bit_of_[s] != kNotCovered; }

  // Whether there is a path. A segment has a path to itself. REQUIRES: covers(from).
  bool has_path(std::int32_t from, std::int32_t to) const;

 private:
  static constexpr std::int32_t kNotCovered = -1;

  // Whether `from` is on the way that leads from `to` back over latest predecessors.
  bool leads_straight(std::int32_t from, std::int32_t to) const;

  const std::vector<Segment>& segments_;
  std::vector<std::int32_t> start_,
      end_;                           // by segment: what the tree of latest predecessors numbers it and all that hang on it
  std::vector<std::int32_t> bit_of_;  // by segment: its bit, if it is covered
  std::size_t words_ = 0;             // words in a row of bits
  std::vector<std::uint64_t> bits_;   // a row for each segment: the covered segments that have a path to it
};

}  // namespace tapedeck
