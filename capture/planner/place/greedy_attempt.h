// One greedy placement: buffers are taken in a given order, and each gets the lowest or the tightest gap that its lifetime
// leaves.
#pragma once

#include <tapedeck/capture/planner/place/chunks.h>
#include <tapedeck/capture/planner/place/place_problem.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace tapedeck {

// The numbers of all buffers, in the order in which they are placed.
using PlaceOrder = std::vector<std::int32_t>;

// first: the lowest gap that is large enough. best: the gap that leaves the fewest bytes unused.
enum class Fit { first, best };

// Finds the gap for one buffer. The caller passes the taken ranges of bytes in ascending order of their starts.
class GapSearch {
 public:
  GapSearch(const Tenant& b, Fit fit, const Chunks& chunks) : b_(b), fit_(fit), chunks_(chunks) {}

  // The bytes first..end-1 are taken. Returns false if no further range can change the answer.
  bool pass(std::int64_t first, std::int64_t end) {
    if (first > top_) {
      const std::int64_t offset = chunks_.settle(top_, b_);
      if (offset + b_.bytes <= first) {
        const std::int64_t rest = first - top_ - b_.bytes;
        if (chosen_ < 0 || rest < slack_) {
          chosen_ = offset;
          slack_ = rest;
        }
        if (fit_ == Fit::first || slack_ == 0) return false;
      }
    }
    top_ = std::max(top_, end);
    return true;
  }

  std::int64_t offset() const { return chosen_ >= 0 ? chosen_ : chunks_.settle(top_, b_); }

 private:
  const Tenant& b_;
  const Fit fit_;
  const Chunks& chunks_;
  std::int64_t top_ = 0;  // the end of all ranges passed so far
  std::int64_t chosen_ = -1, slack_ = 0;
};

// A placement of all buffers of a problem.
struct Attempt {
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
  bool at_hints = false;  // the attempt keeps buffers at their hints
};

// The limits of one attempt.
struct AttemptLimit {
  std::int64_t end = std::numeric_limits<std::int64_t>::max();       // the attempt must end below this
  std::int64_t look_ups = std::numeric_limits<std::int64_t>::max();  // the most look-ups of the space
  const SearchStop* stop = nullptr;
};

// Places all buffers in the given order, except those with an offset >= 0 in `given`, which lie there. As soon as the attempt
// cannot end below the limit, or reaches another limit, it gives up: its end is then no better than the limit's.
template <class AnySpace>
Attempt attempt(const PlaceProblem& p, const PlaceOrder& order, Fit fit, const AttemptLimit& limit, AnySpace& space,
                const std::vector<std::int64_t>& given = {}) {
  constexpr std::size_t kLookEvery = 256;  // buffers between two looks at the limits
  Attempt result;
  result.offsets.assign(p.buffers.size(), 0);
  const auto put = [&](std::int32_t i, std::int64_t offset) {
    const Tenant& b = p.buffers[i];
    result.offsets[i] = offset;
    result.end = std::max(result.end, offset + b.bytes);
    space.insert(i, b, offset);
  };
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] >= 0) put(static_cast<std::int32_t>(i), given[i]);
  std::size_t placed = 0;
  for (std::int32_t i : order) {
    if (result.end >= limit.end) return result;
    if (++placed % kLookEvery == 0 && (space.look_ups() > limit.look_ups || (limit.stop && limit.stop->now()))) {
      result.end = std::numeric_limits<std::int64_t>::max();
      return result;
    }
    if (given.empty() || given[i] < 0) put(i, space.find(i, p.buffers[i], fit));
  }
  return result;
}

}  // namespace tapedeck
