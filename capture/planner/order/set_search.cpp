// Walks from the set in which nothing has run to the set in which all has run, size by size. Of all orders that lead to the
// same set only the one with the lowest peak is kept, and of all sets of one size only the best `width`:
//
//     {} --> {a} --> {a,b} --> {a,b,c}
//        --> {b} --> {a,b}                 reached twice: the lower peak stays
#include <tapedeck/capture/planner/order/set_search.h>

#include <tapedeck/capture/planner/order/done_set.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <tuple>
#include <utility>

namespace tapedeck {

namespace {

// Sets by hash, found or made. A set that is given back keeps its memory for the next.
class SetPool {
 public:
  DownSet& at(std::int32_t id) { return sets_[id]; }

  // A copy of `from`.
  std::int32_t take(const DownSet& from) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int32_t>(sets_.size()));
      sets_.emplace_back();
      is_kept_.push_back(0);
    }
    const std::int32_t id = free_.back();
    free_.pop_back();
    sets_[id] = from;
    return id;
  }

  void give_back(std::int32_t id) {
    is_kept_[id] = 0;
    free_.push_back(id);
  }

  // Where the set that equals this one is noted; what is noted there may be kNone.
  std::int32_t* find(const DownSet& set) {
    if (2 * (noted_ + 1) > table_.size()) grow();
    std::size_t i = set.hash & (table_.size() - 1);
    while (table_[i] != kNone && !is_same(table_[i], set)) i = (i + 1) & (table_.size() - 1);
    return &table_[i];
  }

  void note(std::int32_t* slot, std::int32_t id) {
    if (*slot == kNone) ++noted_;
    *slot = id;
    is_kept_[id] = 1;
  }

 private:
  // Sets that were given back stay in the table until it grows: their places hold the rows together.
  bool is_same(std::int32_t id, const DownSet& set) const {
    const DownSet& s = sets_[id];
    return is_kept_[id] && s.hash == set.hash && s.n_done == set.n_done;
  }

  void grow() {
    std::vector<std::int32_t> old = std::move(table_);
    std::size_t kept = 0;
    for (std::int32_t id : old) kept += id != kNone && is_kept_[id];
    table_.assign(std::max<std::size_t>(1024, std::bit_ceil(4 * (kept + 1))), kNone);
    noted_ = 0;
    std::vector<char> seen(sets_.size(), 0);
    for (std::int32_t id : old)
      if (id != kNone && is_kept_[id] && !std::exchange(seen[id], 1)) note(find(at(id)), id);
  }

  std::deque<DownSet> sets_;
  std::vector<char> is_kept_;
  std::vector<std::int32_t> free_, table_;
  std::size_t noted_ = 0;
};

class Searcher {
 public:
  Searcher(const OrderProblem& problem, const OrderSearch& search)
      : p_(problem),
        search_(search),
        width_(static_cast<std::size_t>(search.width)),
        stepper_(problem),
        by_size_(static_cast<std::size_t>(problem.item_count()) + 1) {}

  OrderFound search() {
    OrderFound found;
    consider(pool_.take(stepper_.start()));
    for (std::int32_t size = 0; size < p_.item_count() && !out_of_work(); ++size) expand_all(size);
    found.complete = complete_ && !out_of_work();
    found.work = stepper_.work();
    if (by_size_.back().empty()) return found;
    const DownSet& last = pool_.at(by_size_.back()[0]);
    found.peak = last.peak;
    for (std::int32_t at = last.last; at != kNone; at = ran_[at].before) found.items.push_back(ran_[at].item);
    std::reverse(found.items.begin(), found.items.end());
    return found;
  }

 private:
  struct Ran {
    std::int32_t item = kNone;
    std::int32_t before = kNone;  // what ran before it
  };

  bool out_of_work() const { return stepper_.work() > search_.work || (search_.cancel && search_.cancel->load()); }

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
        if (r.net <= 0 && set->live + r.extra <= free && (best == set->ready.size() || r.item < set->ready[best].item))
          best = i;
      }
      if (best == set->ready.size()) break;
      run(set, best);
      stepper_.add_work(static_cast<std::int64_t>(set->ready.size() / 4));
    }
    return set->peak < search_.below;
  }

  void expand_all(std::int32_t size) {
    looked_at_ = size;
    std::vector<std::int32_t>& level = by_size_[size];
    trim(&level);
    for (std::int32_t id : level) waiting_bytes_ -= bytes_of(pool_.at(id));
    for (std::int32_t id : level) {
      if (!out_of_work()) expand(id);
      pool_.give_back(id);
    }
    level = {};
  }

  void expand(std::int32_t id) {
    const DownSet& set = pool_.at(id);
    choices_.clear();
    for (std::size_t i = 0; i < set.ready.size(); ++i) {
      const ReadyItem& r = set.ready[i];
      if (set.live + r.extra < search_.below)
        choices_.emplace_back(std::max({set.peak, set.live + r.extra, search_.good}), r.net, r.item, i);
    }
    std::sort(choices_.begin(), choices_.end());
    if (search_.branches > 0 && choices_.size() > static_cast<std::size_t>(search_.branches)) {
      choices_.resize(static_cast<std::size_t>(search_.branches));
      complete_ = false;
    }
    for (const auto& choice : choices_) {
      const std::int32_t next = pool_.take(pool_.at(id));
      stepper_.add_work(static_cast<std::int64_t>(set.done.size() / 4 + set.ready.size()));
      run(&pool_.at(next), std::get<3>(choice));
      consider(next);
    }
  }

  // Keeps a set, unless its peak is not wanted or it has been reached with no higher one.
  void consider(std::int32_t id) {
    DownSet& set = pool_.at(id);
    if (!settle(&set)) return pool_.give_back(id);
    std::int32_t* slot = pool_.find(set);
    if (*slot != kNone) {
      DownSet& known = pool_.at(*slot);
      if (set.peak < known.peak) std::swap(set, known);
      return pool_.give_back(id);
    }
    pool_.note(slot, id);
    std::vector<std::int32_t>& level = by_size_[set.n_done];
    level.push_back(id);
    waiting_bytes_ += bytes_of(pool_.at(id));
    if (level.size() >= 4 * width_ + 64) trim(&level);
    while (waiting_bytes_ > search_.bytes && width_ > 1) narrow();
  }

  static std::int64_t bytes_of(const DownSet& set) {
    return static_cast<std::int64_t>(sizeof set + set.done.size() * sizeof set.done[0] +
                                     set.ready.size() * sizeof set.ready[0]);
  }

  // There are too many sets. Those of the size that is being looked at are not waiting any more.
  void narrow() {
    width_ /= 2;
    for (std::size_t size = static_cast<std::size_t>(looked_at_) + 1; size < by_size_.size(); ++size) trim(&by_size_[size]);
  }

  void trim(std::vector<std::int32_t>* level) {
    if (level->size() <= width_) return;
    complete_ = false;
    const auto rank = [&](std::int32_t id) {
      const DownSet& s = pool_.at(id);
      return std::tuple(std::max(s.peak, search_.good), s.live);
    };
    std::stable_sort(level->begin(), level->end(), [&](std::int32_t a, std::int32_t b) { return rank(a) < rank(b); });
    for (std::size_t i = width_; i < level->size(); ++i) {
      waiting_bytes_ -= bytes_of(pool_.at((*level)[i]));
      pool_.give_back((*level)[i]);
    }
    level->resize(width_);
  }

  const OrderProblem& p_;
  const OrderSearch& search_;
  std::size_t width_;               // sets of each size that are kept
  std::int64_t waiting_bytes_ = 0;  // of sets larger than those that are being looked at
  std::int32_t looked_at_ = -1;     // the size of these
  OrderStepper stepper_;
  SetPool pool_;
  std::vector<std::vector<std::int32_t>> by_size_;  // sets by how many items have run
  std::vector<Ran> ran_;
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int32_t, std::size_t>>
      choices_;  // the peak, what is left alive, the item, its place
  bool complete_ = true;
};

}  // namespace

OrderFound search_orders(const OrderProblem& problem, const OrderSearch& search) { return Searcher(problem, search).search(); }

}  // namespace tapedeck
