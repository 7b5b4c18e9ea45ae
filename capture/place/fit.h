// Buffers taken in some order, each given the lowest or the tightest gap that its lifetime leaves.
#pragma once

#include <tapedeck/capture/place/problem.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tapedeck {

using PlaceOrder = std::vector<std::int32_t>;

struct Placed {
  std::int64_t offset, end;
  std::int32_t birth, death;
};

enum class Fit { first, best };

template <class AnySpace>
std::int64_t find_offset(AnySpace& space, std::int32_t i, const Tenant& b, Fit fit) {
  std::int64_t top = 0;  // end of everything seen so far
  std::int64_t chosen = -1, slack = 0;
  space.each_in_the_way(i, b, [&](const Placed& p) {
    const std::int64_t offset = align_up(top, b.alignment);
    if (offset + b.bytes <= p.offset) {
      const std::int64_t rest = p.offset - top - b.bytes;
      if (chosen < 0 || rest < slack) {
        chosen = offset;
        slack = rest;
      }
      if (fit == Fit::first || slack == 0) return false;
    }
    top = std::max(top, p.end);
    return true;
  });
  return chosen >= 0 ? chosen : align_up(top, b.alignment);
}

struct Attempt {
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
};

// Gives up, with an end no better than `limit`, as soon as it cannot win.
template <class AnySpace>
Attempt attempt(const PlaceProblem& p, const PlaceOrder& order, Fit fit, std::int64_t limit, AnySpace space) {
  Attempt result;
  result.offsets.assign(p.buffers.size(), 0);
  for (std::int32_t i : order) {
    const Tenant& b = p.buffers[i];
    const std::int64_t offset = find_offset(space, i, b, fit);
    result.offsets[i] = offset;
    result.end = std::max(result.end, offset + b.bytes);
    if (result.end >= limit) return result;
    space.insert(i, {offset, offset + b.bytes, b.birth, b.death});
  }
  return result;
}

}  // namespace tapedeck
