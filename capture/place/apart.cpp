#include <tapedeck/capture/place/greedy.h>

#include <limits>

namespace tapedeck {

namespace {

// What has been placed so far, where segments that run side by side must not meet in the same bytes.
class SpaceApart {
 public:
  explicit SpaceApart(const std::vector<Occupation>& when) : when_(when) {}

  void insert(std::int32_t i, const Placed& placed) {
    const auto at = std::upper_bound(by_offset_.begin(), by_offset_.end(), placed.offset,
                                     [](std::int64_t offset, const Entry& e) { return offset < e.placed.offset; });
    by_offset_.insert(at, {placed, when_[i]});
  }

  template <class Visit>
  void each_in_the_way(std::int32_t i, const Tenant& b, Visit&& visit) {
    const Occupation& mine = when_[i];
    for (const Entry& e : by_offset_) {
      const bool free_before = e.placed.death < b.birth && is_done(e.when, mine), free_after = b.death < e.placed.birth && is_done(mine, e.when);
      if (!free_before && !free_after && !visit(e.placed)) return;
    }
  }

 private:
  struct Entry {
    Placed placed;
    Occupation when;
  };

  static bool is_done(const Occupation& first, const Occupation& second) {
    return first.ended < second.began || (first.last_segment == second.segment && first.others_ended < second.began);
  }

  const std::vector<Occupation>& when_;
  std::vector<Entry> by_offset_;
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
      Attempt next = attempt(p, make_order(p), fit, best.end, SpaceApart(mine));
      if (next.end < best.end) best = std::move(next);
    }
  }
  return to_offsets(p, best, buffers.size());
}

}  // namespace tapedeck
