#include <tapedeck/capture/place/greedy.h>

#include <limits>

namespace tapedeck {

namespace {

// What has been placed so far, where segments that run side by side must not meet in the same bytes.
class SpaceApart {
 public:
  explicit SpaceApart(const std::vector<Occupation>& when) : when_(when) {}

  void insert(std::int32_t i, const Tenant& b, std::int64_t offset) {
    const auto at = std::upper_bound(by_offset_.begin(), by_offset_.end(), offset, [](std::int64_t from, const Entry& e) { return from < e.offset; });
    by_offset_.insert(at, {offset, offset + b.bytes, b.birth, b.death, when_[i]});
  }

  std::int64_t find(std::int32_t i, const Tenant& b, Fit fit) {
    const Occupation& mine = when_[i];
    GapSearch search(b, fit, one_arena_);
    for (const Entry& e : by_offset_) {
      const bool free_before = e.death < b.birth && is_done(e.when, mine), free_after = b.death < e.birth && is_done(mine, e.when);
      if (!free_before && !free_after && !search.pass(e.offset, e.end)) break;
    }
    return search.offset();
  }

 private:
  struct Entry {
    std::int64_t offset, end;
    std::int32_t birth, death;
    Occupation when;
  };

  static bool is_done(const Occupation& first, const Occupation& second) {
    return first.ended < second.began || (first.last_segment == second.segment && first.others_ended < second.began);
  }

  const std::vector<Occupation>& when_;
  std::vector<Entry> by_offset_;
  const Chunks one_arena_;
};

}  // namespace

Offsets place_apart(const std::vector<Tenant>& buffers, const std::vector<Occupation>& when) {
  constexpr std::size_t kFew = 3000;  // so many can be tried in several orders
  PlaceProblem p = make_problem(buffers);
  if (p.buffers.size() > kMostApart) return {{}, {}, -1, p.bound};
  std::vector<Occupation> mine;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) mine.push_back(when[p.original[i]]);
  Attempt best;
  best.end = std::numeric_limits<std::int64_t>::max();
  PlaceOrder (*const orders[])(const PlaceProblem&) = {order_by_size, order_by_start, order_by_area};
  for (auto* make_order : orders) {
    if (best.end <= p.bound || (make_order != order_by_size && p.buffers.size() > kFew)) break;
    for (Fit fit : {Fit::first, Fit::best}) {
      SpaceApart space(mine);
      Attempt next = attempt(p, make_order(p), fit, best.end, space);
      if (next.end < best.end) best = std::move(next);
    }
  }
  return to_offsets(p, best, buffers.size());
}

}  // namespace tapedeck
