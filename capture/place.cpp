// Greedy placement: take the buffers in some order and give each the lowest (first fit) or tightest (best fit) gap that its
// lifetime leaves. No order wins everywhere, so all are tried and the lowest end is kept:
//   size      largest first (ties: longest first)        TFLite's and XLA's
//   area      largest bytes x steps first
//   duration  longest first
//   start     first born first, larger first among those  what an allocator at run time would do
//   breadth   by the busiest steps: all that is alive there, largest first
// The buffers that stand in the way of a new one are found either by walking everything placed so far in order of offset, or,
// where few can be alive with it, through a tree over time.
#include <tapedeck/capture/place.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace tapedeck {

namespace {

using Order = std::vector<std::int32_t>;

std::int64_t align_up(std::int64_t offset, std::int64_t alignment) { return (offset + alignment - 1) / alignment * alignment; }

// Steps that matter are births; every lifetime becomes a range of births, so times are dense and small.
struct Problem {
  std::vector<Tenant> buffers;  // with bytes; times are indices of births
  std::vector<std::int32_t> original;
  std::int32_t steps = 0;
  std::vector<std::int64_t> load;  // by step
  std::int64_t bound = 0;
};

Problem make_problem(const std::vector<Tenant>& all) {
  Problem p;
  std::vector<std::int32_t> births;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].bytes <= 0) continue;
    p.buffers.push_back(all[i]);
    p.original.push_back(static_cast<std::int32_t>(i));
    births.push_back(all[i].birth);
  }
  std::sort(births.begin(), births.end());
  births.erase(std::unique(births.begin(), births.end()), births.end());
  p.steps = static_cast<std::int32_t>(births.size());
  p.load.assign(static_cast<std::size_t>(p.steps) + 1, 0);
  for (Tenant& b : p.buffers) {
    b.birth = static_cast<std::int32_t>(std::lower_bound(births.begin(), births.end(), b.birth) - births.begin());
    b.death = static_cast<std::int32_t>(std::upper_bound(births.begin(), births.end(), b.death) - births.begin()) - 1;
    b.death = std::max(b.death, b.birth);
    p.load[b.birth] += b.bytes;
    p.load[b.death + 1] -= b.bytes;
  }
  std::partial_sum(p.load.begin(), p.load.end(), p.load.begin());
  p.load.pop_back();
  for (std::int64_t bytes : p.load) p.bound = std::max(p.bound, bytes);
  return p;
}

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

struct Placed {
  std::int64_t offset, end;
  std::int32_t birth, death;
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

// The same where segments that run side by side must not meet in the same bytes.
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
Attempt attempt(const Problem& p, const Order& order, Fit fit, std::int64_t limit, AnySpace space) {
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

// ---- orders ----

template <class Key>
Order sorted_by(const Problem& p, Key key) {
  Order order(p.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
    const auto kx = key(p.buffers[x]), ky = key(p.buffers[y]);
    return kx != ky ? kx < ky : x < y;
  });
  return order;
}

std::int64_t duration(const Tenant& b) { return b.death - b.birth + 1; }

Order by_size(const Problem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(-b.bytes, -duration(b), b.birth); });
}
Order by_area(const Problem& p) {
  return sorted_by(
      p, [](const Tenant& b) { return std::tuple(-static_cast<double>(b.bytes) * static_cast<double>(duration(b)), b.birth); });
}
Order by_duration(const Problem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(-duration(b), -b.bytes, b.birth); });
}
Order by_start(const Problem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(b.birth, -b.bytes, -duration(b)); });
}

// Each buffer belongs to the busiest step of its life.
Order by_breadth(const Problem& p) {
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

Offsets finish(const Problem& p, const Attempt& best, std::size_t n_buffers) {
  Offsets result;
  result.offsets.assign(n_buffers, 0);
  for (std::size_t i = 0; i < p.buffers.size(); ++i) result.offsets[p.original[i]] = best.offsets[i];
  result.end = p.buffers.empty() ? 0 : best.end;
  result.bound = p.bound;
  return result;
}

}  // namespace

Offsets place(const std::vector<Tenant>& buffers) {
  const Problem p = make_problem(buffers);
  Attempt best;
  best.end = std::numeric_limits<std::int64_t>::max();
  Order (*const orders[])(const Problem&) = {by_size, by_start, by_duration, by_area, by_breadth};
  for (auto* make_order : orders) {
    const Order order = make_order(p);
    for (Fit fit : {Fit::first, Fit::best}) {
      if (best.end <= p.bound) break;
      Attempt next = attempt(p, order, fit, best.end, Space(p.steps));
      if (next.end < best.end) best = std::move(next);
    }
  }
  return finish(p, best, buffers.size());
}

Offsets place_apart(const std::vector<Tenant>& buffers, const std::vector<Occupation>& when) {
  constexpr std::size_t kFew = 3000;  // so many can be tried in several orders
  Problem p = make_problem(buffers);
  if (p.buffers.size() > kMostApart) return {{}, -1, p.bound};
  std::vector<Occupation> mine;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) mine.push_back(when[p.original[i]]);
  Attempt best;
  best.end = std::numeric_limits<std::int64_t>::max();
  Order (*const orders[])(const Problem&) = {by_size, by_start, by_area};
  for (auto* make_order : orders) {
    if (best.end <= p.bound || (make_order != by_size && p.buffers.size() > kFew)) break;
    for (Fit fit : {Fit::first, Fit::best}) {
      Attempt next = attempt(p, make_order(p), fit, best.end, SpaceApart(mine));
      if (next.end < best.end) best = std::move(next);
    }
  }
  return finish(p, best, buffers.size());
}

}  // namespace tapedeck
