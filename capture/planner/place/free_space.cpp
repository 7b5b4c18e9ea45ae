// The segment tree of taken bytes; see free_space.h. A buffer with the lifetime [2, 7] of 8 steps covers two nodes:
//
//                  [0..7]                 any
//          [0..3]          [4..7]         [0..3]: any       [4..7]: covering and any
//      [0..1] [2..3]   [4..5] [6..7]      [2..3]: covering and any
//
// The bytes of the buffer go into `covering` of the nodes that it covers, and into `any` of these nodes and of all nodes above.
#include <tapedeck/capture/planner/place/free_space.h>

#include <tapedeck/capture/planner/place/alive_steps.h>

#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace tapedeck {

namespace {
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();
}

std::int64_t granule_of(const PlaceProblem& p, const Chunks& chunks) {
  std::int64_t granule = 0;
  for (const Tenant& b : p.buffers) granule = std::gcd(granule, b.alignment);
  return chunks.is_one() && granule > 0 ? granule : 1;
}

Space::Space(const PlaceProblem& p, const Chunks& chunks) : chunks_(chunks), granule_(granule_of(p, chunks)) {
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

SmallSpace::Block::Block() {
  std::fill(birth, birth + kMost, std::numeric_limits<std::int32_t>::max());
  std::fill(death, death + kMost, -1);
}

void SmallSpace::Block::insert(const Tenant& b, const Bytes& bytes) {
  std::size_t at = count++;
  for (; at > 0 && taken[at - 1].first > bytes.first; --at) {
    taken[at] = taken[at - 1];
    birth[at] = birth[at - 1];
    death[at] = death[at - 1];
  }
  taken[at] = bytes;
  birth[at] = b.birth;
  death[at] = b.death;
}

void SmallSpace::Block::move_half_to(Block* next) {
  const std::size_t half = count / 2;
  for (std::size_t k = half; k < count; ++k) {
    next->birth[k - half] = std::exchange(birth[k], std::numeric_limits<std::int32_t>::max());
    next->death[k - half] = std::exchange(death[k], -1);
    next->taken[k - half] = taken[k];
  }
  next->count = count - half;
  count = half;
}

// A bit for each life that meets the life of b, holes not counted. The compiler makes no branch of the first loop, but compares
// many lives at once, and reads eight bytes at once in the second.
std::uint64_t SmallSpace::Block::meeting(const Tenant& b) const {
  const std::int32_t first = b.birth, last = b.death;
  std::uint8_t meets[kMost];
  for (std::size_t k = 0; k < kMost; ++k) meets[k] = static_cast<std::uint8_t>((birth[k] <= last) & (death[k] >= first));
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < kMost; k += 8) {
    const std::uint8_t* at = meets + k;
    const std::uint64_t eight = std::uint64_t{at[0]} | std::uint64_t{at[1]} << 8 | std::uint64_t{at[2]} << 16 |
                                std::uint64_t{at[3]} << 24 | std::uint64_t{at[4]} << 32 | std::uint64_t{at[5]} << 40 |
                                std::uint64_t{at[6]} << 48 | std::uint64_t{at[7]} << 56;
    bits |= (eight * 0x0102040810204080u >> 56) << k;  // the byte 8 * i becomes the bit 56 + i
  }
  return bits;
}

void SmallSpace::insert(std::int32_t, const Tenant& b, std::int64_t offset) {
  const auto above = static_cast<std::size_t>(std::upper_bound(lowest_.begin(), lowest_.end(), offset) - lowest_.begin());
  const std::size_t at = above > 0 ? above - 1 : 0;
  if (blocks_.empty()) {
    blocks_.push_back(std::make_unique<Block>());
    lowest_.push_back(offset);
  }
  blocks_[at]->insert(b, {offset, align_up(offset + b.bytes, granule_), b.holes.empty() ? nullptr : &b});
  lowest_[at] = blocks_[at]->taken[0].first;
  if (blocks_[at]->count < Block::kMost) return;
  auto next = std::make_unique<Block>();
  blocks_[at]->move_half_to(next.get());
  lowest_.insert(lowest_.begin() + static_cast<std::ptrdiff_t>(at) + 1, next->taken[0].first);
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(next));
}

std::int64_t SmallSpace::find(std::int32_t, const Tenant& b, Fit fit) {
  GapSearch search(b, fit, chunks_);
  for (const std::unique_ptr<Block>& block : blocks_)
    for (std::uint64_t left = block->meeting(b); left != 0; left &= left - 1) {
      const auto k = static_cast<std::size_t>(std::countr_zero(left));
      const Bytes& taken = block->taken[k];
      const bool meets = taken.with_holes ? alive_together(b, *taken.with_holes)
                                          : b.holes.empty() || alive_together(b, {0, 1, block->birth[k], block->death[k]});
      if (meets && !search.pass(taken.first, taken.end)) return search.offset();
    }
  return search.offset();
}

}  // namespace tapedeck
