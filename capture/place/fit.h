// Buffers taken in some order, each given the lowest or the tightest gap that its lifetime leaves.
#pragma once

#include <tapedeck/capture/place/chunks.h>
#include <tapedeck/capture/place/problem.h>

#include <algorithm>
#include <cstdint>
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
};

// Gives up, with an end no better than `limit`, as soon as it cannot win. Buffers that have an offset in `given` (-1: none) lie there.
template <class AnySpace>
Attempt attempt(const PlaceProblem& p, const PlaceOrder& order, Fit fit, std::int64_t limit, AnySpace& space, const std::vector<std::int64_t>& given = {}) {
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
  for (std::int32_t i : order) {
    if (result.end >= limit) return result;
    if (given.empty() || given[i] < 0) put(i, space.find(i, p.buffers[i], fit));
  }
  return result;
}

}  // namespace tapedeck
