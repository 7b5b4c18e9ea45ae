// place_apart(): greedy placement for a run on several threads. Two buffers meet if their lives overlap, or if the segments
// that use them may run at the same time; see place.h.
#include <tapedeck/capture/planner/place/greedy_orders.h>

#include <limits>

namespace tapedeck {

namespace {

struct Use {
  std::int32_t birth, death;
  Occupation when;
};

bool is_done(const Occupation& first, const Occupation& second) {
  return first.ended < second.began || (first.last_segment == second.segment && first.others_ended < second.began);
}

bool meet(const Use& a, const Use& b) {
  return !(a.death < b.birth && is_done(a.when, b.when)) && !(b.death < a.birth && is_done(b.when, a.when));
}

// The buffers placed so far. Buffers that meet must not share bytes.
class SpaceApart {
 public:
  SpaceApart(const std::vector<Use>& uses, const Chunks& chunks) : uses_(uses), chunks_(chunks) {}

  void insert(std::int32_t i, const Tenant& b, std::int64_t offset) {
    const auto at = std::upper_bound(by_offset_.begin(), by_offset_.end(), offset,
                                     [](std::int64_t from, const Entry& e) { return from < e.offset; });
    by_offset_.insert(at, {offset, offset + b.bytes, uses_[i]});
  }

  std::int64_t find(std::int32_t i, const Tenant& b, Fit fit) {
    GapSearch search(b, fit, chunks_);
    for (const Entry& e : by_offset_)
      if (meet(uses_[i], e.use) && !search.pass(e.offset, e.end)) break;
    return search.offset();
  }
  std::int64_t look_ups() const { return 0; }

 private:
  struct Entry {
    std::int64_t offset, end;
    Use use;
  };

  const std::vector<Use>& uses_;
  std::vector<Entry> by_offset_;
  const Chunks& chunks_;
};

}  // namespace

Offsets place_apart(const std::vector<Tenant>& buffers, const std::vector<Occupation>& when, std::int64_t chunk_bytes) {
  constexpr std::size_t kFew = 3000;  // at most so many buffers are tried in several orders
  PlaceProblem p = make_problem(buffers);
  if (p.buffers.size() > kMostApart) return {{}, {}, -1, p.bound};
  std::vector<Use> uses;
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    uses.push_back({p.buffers[i].birth, p.buffers[i].death, when[p.original[i]]});
  Oversized large;
  if (chunk_bytes > 0)
    large = place_oversized(p, chunk_bytes, [&](std::int32_t i, std::int32_t k) { return meet(uses[i], uses[k]); });
  const Chunks chunks(large.sizes, std::max<std::int64_t>(chunk_bytes, 0));
  Offsets best;
  best.end = std::numeric_limits<std::int64_t>::max();
  PlaceOrder (*const orders[])(const PlaceProblem&) = {order_by_size, order_by_start, order_by_area};
  for (auto* make_order : orders) {
    if (best.end <= p.bound || (make_order != order_by_size && p.buffers.size() > kFew)) break;
    for (Fit fit : {Fit::first, Fit::best}) {
      SpaceApart space(uses, chunks);
      // With several arenas, a placement that ends higher may use fewer bytes in sum.
      const std::int64_t limit = chunks.is_one() ? best.end : std::numeric_limits<std::int64_t>::max();
      const Attempt next = attempt(p, make_order(p), fit, {.end = limit}, space, large.offsets);
      if (next.end >= limit) continue;
      Offsets split = chunks.is_one() ? to_offsets(p, next, buffers.size()) : split_up(p, chunks, next, buffers.size());
      if (split.end < best.end) best = std::move(split);
    }
  }
  return best;
}

}  // namespace tapedeck
