// The segment tree of taken bytes; see free_space.h. A buffer with the lifetime [2, 7] of 8 steps covers two nodes:
//
//                  [0..7]                 any
//          [0..3]          [4..7]         [0..3]: any       [4..7]: covering and any
//      [0..1] [2..3]   [4..5] [6..7]      [2..3]: covering and any
//
// The bytes of the buffer go into `covering` of the nodes that it covers, and into `any` of these nodes and of all nodes above.
#include <tapedeck/capture/planner/place/free_space.h>

#include <tapedeck/capture/planner/place/alive_steps.h>

#include <limits>
#include <numeric>

namespace tapedeck {

namespace {
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();
}

Space::Space(const PlaceProblem& p, const Chunks& chunks) : chunks_(chunks) {
  for (const Tenant& b : p.buffers) granule_ = std::gcd(granule_, b.alignment);
  if (!chunks.is_one() || granule_ == 0) granule_ = 1;
  while (leaves_ < p.steps) leaves_ *= 2;
  covering_.resize(static_cast<std::size_t>(leaves_) * 2);
  any_.resize(static_cast<std::size_t>(leaves_) * 2);
}

void Space::clear() {
  for (Taken& taken : covering_) taken.clear();
  for (Taken& taken : any_) taken.clear();
  look_ups_ = 0;
}

void Space::add(Taken& taken, std::int64_t first, std::int64_t end) {
  constexpr std::int64_t kMovedAtOnce = 16;
  look_ups_ += 8 + static_cast<std::int64_t>(taken.size()) / kMovedAtOnce;
  // from..to are the ranges that the new bytes touch.
  const auto from =
      std::lower_bound(taken.begin(), taken.end(), first, [](const Bytes& b, std::int64_t at) { return b.end < at; });
  auto to = from;
  while (to != taken.end() && to->first <= end) ++to;
  if (from == to) {
    taken.insert(from, {first, end});
    return;
  }
  from->first = std::min(from->first, first);
  from->end = std::max((to - 1)->end, end);
  taken.erase(from + 1, to);
}

void Space::insert(std::int32_t, const Tenant& b, std::int64_t offset) {
  const std::int64_t end = align_up(offset + b.bytes, granule_);
  each_alive(b, [&](Steps steps) {
    const auto cover = [&](std::int32_t node) {
      add(covering_[node], offset, end);
      add(any_[node], offset, end);
    };
    std::int32_t l = steps.first + leaves_, r = steps.last + leaves_ + 1;
    // The lifetime covers a part of the nodes above its two ends. Each of these nodes is visited once: on the way up from the
    // left end, and on the way up from the right end until the two ways join.
    std::int32_t left = l, right = r - 1;
    for (; l < r; l /= 2, r /= 2) {
      if (l & 1) cover(l++);
      if (r & 1) cover(--r);
    }
    for (left /= 2, right /= 2; left > 0; left /= 2, right /= 2) {
      add(any_[left], offset, end);
      if (right != left) add(any_[right], offset, end);
    }
  });
}

void Space::gather(const Tenant& b) {
  ways_.clear();
  const auto take = [&](const Taken& taken) {
    if (!taken.empty()) ways_.push_back({taken.data(), taken.data() + taken.size()});
  };
  each_alive(b, [&](Steps steps) {
    std::int32_t l = steps.first + leaves_, r = steps.last + leaves_ + 1;
    std::int32_t left = l, right = r - 1;
    for (; l < r; l /= 2, r /= 2) {
      if (l & 1) take(any_[l++]);
      if (r & 1) take(any_[--r]);
    }
    for (left /= 2, right /= 2; left > 0; left /= 2, right /= 2) {
      take(covering_[left]);
      if (right != left) take(covering_[right]);
    }
  });
}

std::int64_t Space::find(std::int32_t, const Tenant& b, Fit fit) {
  gather(b);
  look_ups_ += static_cast<std::int64_t>(ways_.size());
  return fit == Fit::first ? first_fit(b) : best_fit(b);
}

// The lowest offset from `from` on where nothing is in the way of b. Every cursor is moved to the first range that ends above
// the current offset, until a whole round of cursors moves nothing. `from` must not decrease from call to call.
std::int64_t Space::next_fit(std::int64_t from, const Tenant& b) {
  std::int64_t at = chunks_.settle(from, b);
  for (std::size_t w = 0, quiet = 0; quiet < ways_.size(); w = w + 1 == ways_.size() ? 0 : w + 1) {
    Cursor& way = ways_[w];
    ++look_ups_;
    if (way.at != way.end && way.at->end <= at) {
      ++way.at;
      if (way.at != way.end && way.at->end <= at)
        way.at =
            std::lower_bound(way.at, way.end, at, [](const Bytes& taken, std::int64_t offset) { return taken.end <= offset; });
    }
    if (way.at != way.end && way.at->first < at + b.bytes) {
      at = chunks_.settle(way.at->end, b);
      quiet = 0;
    } else {
      ++quiet;
    }
  }
  return at;
}

std::int64_t Space::first_fit(const Tenant& b) { return next_fit(0, b); }

std::int64_t Space::best_fit(const Tenant& b) {
  if (!chunks_.is_one() || b.alignment != granule_) return best_of_all(b);
  // All ends are aligned like the buffer, so a gap begins at an offset where the buffer can lie.
  std::int64_t chosen = -1, slack = 0, at = 0;
  for (;;) {
    at = next_fit(at, b);
    std::int64_t gap_end = kNowhere;
    for (const Cursor& way : ways_)
      if (way.at != way.end) gap_end = std::min(gap_end, way.at->first);
    if (gap_end == kNowhere) return chosen >= 0 ? chosen : at;
    const std::int64_t rest = gap_end - at - b.bytes;
    if (chosen < 0 || rest < slack) chosen = at, slack = rest;
    if (slack == 0) return chosen;
    at = gap_end;
  }
}

// Best fit for any alignment, over the sorted list of all taken ranges.
std::int64_t Space::best_of_all(const Tenant& b) {
  found_.clear();
  for (const Cursor& way : ways_) found_.insert(found_.end(), way.at, way.end);
  std::sort(found_.begin(), found_.end(), [](const Bytes& x, const Bytes& y) { return x.first < y.first; });
  GapSearch search(b, Fit::best, chunks_);
  for (const Bytes& taken : found_)
    if (!search.pass(taken.first, taken.end)) break;
  return search.offset();
}

bool Space::is_free(const Tenant& b, std::int64_t offset) {
  gather(b);
  for (const Cursor& way : ways_) {
    const Bytes* at =
        std::lower_bound(way.at, way.end, offset, [](const Bytes& taken, std::int64_t from) { return taken.end <= from; });
    if (at != way.end && at->first < offset + b.bytes) return false;
  }
  return true;
}

void SmallSpace::insert(std::int32_t, const Tenant& b, std::int64_t offset) {
  const auto at = std::upper_bound(by_offset_.begin(), by_offset_.end(), offset,
                                   [](std::int64_t from, const Entry& e) { return from < e.offset; });
  by_offset_.insert(at, {offset, offset + b.bytes, b.birth, b.death, b.holes.empty() ? nullptr : &b});
}

std::int64_t SmallSpace::find(std::int32_t, const Tenant& b, Fit fit) {
  GapSearch search(b, fit, chunks_);
  for (const Entry& e : by_offset_) {
    if (e.birth > b.death || e.death < b.birth) continue;
    const bool meets =
        e.with_holes ? alive_together(b, *e.with_holes) : b.holes.empty() || alive_together(b, {0, 1, e.birth, e.death});
    if (meets && !search.pass(e.offset, e.end)) break;
  }
  return search.offset();
}

}  // namespace tapedeck
