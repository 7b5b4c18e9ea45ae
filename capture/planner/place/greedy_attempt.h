// Buffers taken in some order, each given the lowest or the tightest gap that its lifetime leaves.
#pragma once

#include <tapedeck/capture/planner/place/chunks.h>
#include <tapedeck/capture/planner/place/place_problem.h>
#include <tapedeck/capture/planner/place/search_stop.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace tapedeck {

using PlaceOrder = std::vector<std::int32_t>;

enum class Fit { first, best };

// Fed with the occupied bytes in ascending order of their first, says where a buffer goes.
class GapSearch {
 public:
  GapSearch(const Tenant& b, Fit fit, const Chunks& chunks) : b_(b), fit_(fit), chunks_(chunks) {}

  // Bytes first..end-1 are taken. False: no more need be known.
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
  std::int64_t top_ = 0;  // end of everything seen so far
  std::int64_t chosen_ = -1, slack_ = 0;
};

struct Attempt {
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
  bool at_hints = false;  // it was made to keep addresses
};

// How far an attempt may go.
struct AttemptLimit {
  std::int64_t end = std::numeric_limits<std::int64_t>::max();       // it must end below
  std::int64_t look_ups = std::numeric_limits<std::int64_t>::max();  // of the space
  const SearchStop* stop = nullptr;
};

// Gives up, with an end no better than the limit's, as soon as it cannot win or may go no further. Buffers that have an offset
// in `given`
// (-1: none) lie there.
template <class AnySpace>
Attempt attempt(const PlaceProblem& p, const PlaceOrder& order, Fit fit, const AttemptLimit& limit, AnySpace& space,
                const std::vector<std::int64_t>& given = {}) {
  constexpr std::size_t kLookEvery = 256;  // buffers
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
