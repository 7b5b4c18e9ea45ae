// The buffers that stand in the way of a new one are found either by walking everything placed so far in order of offset, or, where few can
// be alive with it, through a tree over time.
#include <tapedeck/capture/place/greedy.h>

#include <limits>
#include <numeric>
#include <tuple>

namespace tapedeck {

namespace {

// Counts by step with prefix sums (a Fenwick tree).
class Counter {
 public:
  explicit Counter(std::int32_t n) : tree_(static_cast<std::size_t>(n) + 1, 0) {}
  void add(std::int32_t i) {
    for (++i; i < static_cast<std::int32_t>(tree_.size()); i += i & -i) ++tree_[i];
  }
  std::int32_t up_to(std::int32_t i) const {  // of steps 0..i
    std::int32_t sum = 0;
    for (++i; i > 0; i -= i & -i) sum += tree_[i];
    return sum;
  }

 private:
  std::vector<std::int32_t> tree_;
};

// What has been placed so far, asked for what is alive during a lifetime, in order of offset.
class Space {
 public:
  explicit Space(std::int32_t steps) : births_(steps), deaths_(steps), born_(static_cast<std::size_t>(steps)) {
    for (leaves_ = 1; leaves_ < steps; leaves_ *= 2) {
    }
    covering_.resize(static_cast<std::size_t>(leaves_) * 2);
  }

  void insert(std::int32_t, const Placed& placed) {
    const auto at = std::upper_bound(by_offset_.begin(), by_offset_.end(), placed.offset,
                                     [](std::int64_t offset, const Placed& p) { return offset < p.offset; });
    by_offset_.insert(at, placed);
    births_.add(placed.birth);
    deaths_.add(placed.death);
    born_[placed.birth].push_back(placed);
    for (std::int32_t l = placed.birth + leaves_, r = placed.death + leaves_ + 1; l < r; l /= 2, r /= 2) {
      if (l & 1) covering_[l++].push_back(placed);
      if (r & 1) covering_[--r].push_back(placed);
    }
  }

  // Calls visit(placed) in order of offset for all that is alive with `b`, until it returns false.
  template <class Visit>
  void each_in_the_way(std::int32_t, const Tenant& b, Visit&& visit) {
    const std::int64_t alive = births_.up_to(b.death) - (b.birth > 0 ? deaths_.up_to(b.birth - 1) : 0);
    if (alive * 16 + (b.death - b.birth) < static_cast<std::int64_t>(by_offset_.size())) return visit_gathered(b, visit);
    for (const Placed& p : by_offset_)
      if (p.birth <= b.death && p.death >= b.birth && !visit(p)) return;
  }

 private:
  template <class Visit>
  void visit_gathered(const Tenant& b, Visit&& visit) {
    found_.clear();
    for (std::int32_t i = b.birth + leaves_; i > 0; i /= 2)
      found_.insert(found_.end(), covering_[i].begin(), covering_[i].end());
    for (std::int32_t step = b.birth + 1; step <= b.death; ++step)
      found_.insert(found_.end(), born_[step].begin(), born_[step].end());
    std::sort(found_.begin(), found_.end(), [](const Placed& x, const Placed& y) { return x.offset < y.offset; });
    for (const Placed& p : found_)
      if (!visit(p)) return;
  }

  std::vector<Placed> by_offset_;
  Counter births_, deaths_;
  std::vector<std::vector<Placed>> born_;      // by step
  std::vector<std::vector<Placed>> covering_;  // segment tree: lifetimes that cover all of a node's steps
  std::int32_t leaves_ = 1;
  std::vector<Placed> found_;
};

template <class Key>
PlaceOrder sorted_by(const PlaceProblem& p, Key key) {
  PlaceOrder order(p.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
    const auto kx = key(p.buffers[x]), ky = key(p.buffers[y]);
    return kx != ky ? kx < ky : x < y;
  });
  return order;
}

std::int64_t duration(const Tenant& b) { return b.death - b.birth + 1; }

}  // namespace

PlaceOrder order_by_size(const PlaceProblem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(-b.bytes, -duration(b), b.birth); });
}
PlaceOrder order_by_area(const PlaceProblem& p) {
  return sorted_by(
      p, [](const Tenant& b) { return std::tuple(-static_cast<double>(b.bytes) * static_cast<double>(duration(b)), b.birth); });
}
PlaceOrder order_by_duration(const PlaceProblem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(-duration(b), -b.bytes, b.birth); });
}
PlaceOrder order_by_start(const PlaceProblem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(b.birth, -b.bytes, -duration(b)); });
}

// Each buffer belongs to the busiest step of its life.
PlaceOrder order_by_breadth(const PlaceProblem& p) {
  // Busiest step of a range by a sparse table of maxima.
  std::vector<std::vector<std::int64_t>> most{p.load};
  for (std::size_t width = 1; width * 2 <= p.load.size(); width *= 2) {
    const auto& last = most.back();
    std::vector<std::int64_t> next(last.size() - width);
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = std::max(last[i], last[i + width]);
    most.push_back(std::move(next));
  }
  const auto busiest = [&](const Tenant& b) {
    std::size_t level = 0;
    while ((std::int64_t{2} << level) <= duration(b)) ++level;
    return std::max(most[level][b.birth], most[level][b.death + 1 - (std::int32_t{1} << level)]);
  };
  return sorted_by(p, [&](const Tenant& b) { return std::tuple(-busiest(b), -b.bytes, -duration(b), b.birth); });
}

Attempt place_greedily(const PlaceProblem& p) {
  Attempt best;
  best.end = std::numeric_limits<std::int64_t>::max();
  PlaceOrder (*const orders[])(const PlaceProblem&) = {order_by_size, order_by_start, order_by_duration, order_by_area, order_by_breadth};
  for (auto* make_order : orders) {
    const PlaceOrder order = make_order(p);
    for (Fit fit : {Fit::first, Fit::best}) {
      if (best.end <= p.bound) break;
      Attempt next = attempt(p, order, fit, best.end, Space(p.steps));
      if (next.end < best.end) best = std::move(next);
    }
  }
  return best;
}

Offsets to_offsets(const PlaceProblem& p, const Attempt& best, std::size_t n_buffers) {
  Offsets result;
  result.offsets.assign(n_buffers, 0);
  for (std::size_t i = 0; i < p.buffers.size(); ++i) result.offsets[p.original[i]] = best.offsets[i];
  result.end = p.buffers.empty() ? 0 : best.end;
  result.bound = p.bound;
  return result;
}

}  // namespace tapedeck
