#include <tapedeck/capture/order/search.h>

#include <tapedeck/capture/order/down_set.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace tapedeck {

namespace {

class Searcher {
 public:
  Searcher(const OrderProblem& problem, const OrderSearch& search) : p_(problem), search_(search), stepper_(problem), by_size_(static_cast<std::size_t>(problem.item_count()) + 1) {}

  OrderFound search() {
    OrderFound found;
    DownSet first = stepper_.start();
    if (settle(&first)) keep(std::move(first));
    complete_ = complete_ && search_.width > 0;
    for (std::int32_t size = 0; size < p_.item_count() && !out_of_work(); ++size) expand_all(size);
    const Level& last = by_size_.back();
    found.complete = complete_ && !out_of_work();
    found.work = stepper_.work();
    if (last.sets.empty()) return found;
    found.peak = last.sets[0].peak;
    for (std::int32_t at = last.sets[0].last; at != kNone; at = ran_[at].before) found.items.push_back(ran_[at].item);
    std::reverse(found.items.begin(), found.items.end());
    return found;
  }

 private:
  struct Ran {
    std::int32_t item = kNone;
    std::int32_t before = kNone;  // what ran before it
  };
  struct Level {  // sets of one size
    std::vector<DownSet> sets;
    std::unordered_map<std::uint64_t, std::size_t> by_hash;  // looked up, never walked
  };

  bool out_of_work() const { return stepper_.work() > search_.work || (search_.cancel && search_.cancel->load()); }

  std::tuple<std::int64_t, std::int64_t> rank(const DownSet& s) const { return {std::max(s.peak, search_.good), s.live}; }

  void run(DownSet* set, std::size_t ready) {
    ran_.push_back({set->ready[ready].item, set->last});
    set->last = static_cast<std::int32_t>(ran_.size()) - 1;
    stepper_.run(set, ready);
  }

  // Runs all that cannot hurt, the first recorded first. False if the peak is not wanted.
  bool settle(DownSet* set) {
    for (;;) {
      const std::int64_t free = std::max(set->peak, search_.good);
      std::size_t best = set->ready.size();
      for (std::size_t i = 0; i < set->ready.size(); ++i) {
        const ReadyItem& r = set->ready[i];
        if (r.net <= 0 && set->live + r.extra <= free && (best == set->ready.size() || r.item < set->ready[best].item)) best = i;
      }
      if (best == set->ready.size()) break;
      run(set, best);
      stepper_.add_work(static_cast<std::int64_t>(set->ready.size() / 4));
    }
    return set->peak < search_.below;
  }

  void expand_all(std::int32_t size) {
    Level& level = by_size_[static_cast<std::size_t>(size)];
    trim(&level);
    for (const DownSet& set : level.sets) {
      if (out_of_work()) break;
      expand(set);
    }
    level = {};
  }

  void expand(const DownSet& set) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < set.ready.size(); ++i)
      if (set.live + set.ready[i].extra < search_.below) order.push_back(i);
    const auto rank = [&](std::size_t i) {
      const ReadyItem& r = set.ready[i];
      return std::tuple(std::max({set.peak, set.live + r.extra, search_.good}), r.net, r.item);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    if (search_.branches > 0 && order.size() > static_cast<std::size_t>(search_.branches)) {
      order.resize(static_cast<std::size_t>(search_.branches));
      complete_ = false;
    }
    for (std::size_t i : order) {
      DownSet next = set;
      stepper_.add_work(static_cast<std::int64_t>(set.done.size() / 4 + set.ready.size()));
      run(&next, i);
      if (settle(&next)) keep(std::move(next));
    }
  }

  void keep(DownSet set) {
    Level& level = by_size_[static_cast<std::size_t>(set.n_done)];
    const auto [at, is_new] = level.by_hash.emplace(set.hash, level.sets.size());
    if (is_new) {
      level.sets.push_back(std::move(set));
      if (level.sets.size() >= 4 * static_cast<std::size_t>(search_.width) + 64) trim(&level);
    } else if (set.peak < level.sets[at->second].peak) {
      level.sets[at->second] = std::move(set);
    }
  }

  void trim(Level* level) {
    const auto width = static_cast<std::size_t>(search_.width);
    if (level->sets.size() <= width) return;
    complete_ = false;
    std::stable_sort(level->sets.begin(), level->sets.end(), [&](const DownSet& a, const DownSet& b) { return rank(a) < rank(b); });
    level->sets.resize(width);
    level->by_hash.clear();
    for (std::size_t i = 0; i < width; ++i) level->by_hash.emplace(level->sets[i].hash, i);
  }

  const OrderProblem& p_;
  const OrderSearch& search_;
  OrderStepper stepper_;
  std::vector<Level> by_size_;
  std::vector<Ran> ran_;
  bool complete_ = true;
};

}  // namespace

OrderFound search_orders(const OrderProblem& problem, const OrderSearch& search) { return Searcher(problem, search).search(); }

}  // namespace tapedeck
