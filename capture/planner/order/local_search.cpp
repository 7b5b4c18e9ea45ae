// Moves single items until no move helps. A value that is alive at the peak without being used there gives two moves:
//
//     a  P  s  t      a is made before the peak P and read by s behind it
//     P  a  s  t      made later, with all that depends on it
//     a  s  P  t      read earlier, with all that the reader needs
#include <tapedeck/capture/planner/order/local_search.h>

#include <tapedeck/capture/analysis/takeovers.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::int32_t kLarge = 25000;  // items; beyond, sorting and looking count as work, too
constexpr std::int64_t kSortWork = 16;  // of a value that is sorted

class Climber {
 public:
  Climber(const OrderProblem& problem, const ItemOrder& start, const OrderClimb& climb)
      : p_(problem), climb_(climb), order_(start), position_(start.size()), in_block_(start.size(), 0) {
    for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<std::int32_t>(i);
    live_ = live_in_order(p_, order_);
  }

  Climbed climb() {
    find_peak();
    while (peak_ > climb_.bound && improve()) find_peak();
    return {std::move(order_), peak_, work_};
  }

 private:
  bool tired() const { return work_ > climb_.work || (climb_.cancel && climb_.cancel->load()); }

  // In a large order a window may be long, and there is a window for each live value. So windows count as work even if they
  // lead to no better order.
  void count_if_large(std::int64_t work) {
    if (p_.item_count() > kLarge) work_ += work;
  }

  void find_peak() {
    const auto at = std::max_element(live_.begin(), live_.end());
    peak_ = live_.empty() ? 0 : *at;
    at_ = static_cast<std::int32_t>(at - live_.begin());
    work_ += static_cast<std::int64_t>(live_.size()) / 16;
  }

  std::int32_t first_use(std::int32_t value) const { return position_[first_maker(p_, value, position_)]; }

  std::int32_t last_use(std::int32_t value) const {
    std::int32_t last = p_.maker[value] == kNone ? 0 : position_[p_.maker[value]];
    for (std::int32_t r : p_.readers[value]) last = std::max(last, position_[r]);
    return last;
  }

  // Values alive at the peak, the largest first.
  std::vector<std::int32_t> alive_at_peak() const {
    std::vector<std::int32_t> alive;
    for (std::int32_t v = 0; v < p_.value_count(); ++v)
      if (first_use(v) <= at_ && last_use(v) >= at_) alive.push_back(v);
    std::stable_sort(alive.begin(), alive.end(), [&](std::int32_t a, std::int32_t b) { return p_.bytes[a] > p_.bytes[b]; });
    return alive;
  }

  bool improve() {
    work_ += p_.value_count();
    const std::vector<std::int32_t> alive = alive_at_peak();
    count_if_large(kSortWork * static_cast<std::int64_t>(alive.size()));
    for (std::int32_t v : alive) {
      if (tired()) return false;
      if (make_later(v) || read_earlier(v)) return true;
    }
    return false;
  }

  // Moves the maker, or all items that might open a whole, behind position `to`, with all items up to `to` that depend on them.
  bool delay(std::int32_t value, std::int32_t to) {
    const std::int32_t from = first_use(value);
    if (to <= from) return false;
    count_if_large(to - from);
    const auto openers = p_.openers[value];
    std::vector<std::int32_t> stay, go;
    for (std::int32_t i = from; i <= to; ++i) {
      const std::int32_t at = order_[i];
      const auto before = p_.before[at];
      const bool hangs = i == from || std::find(openers.begin(), openers.end(), at) != openers.end() ||
                         std::any_of(before.begin(), before.end(), [&](std::int32_t b) { return in_block_[b] != 0; });
      in_block_[at] = hangs;
      (hangs ? go : stay).push_back(at);
    }
    for (std::int32_t g : go) in_block_[g] = 0;
    if (stay.empty()) return false;
    stay.insert(stay.end(), go.begin(), go.end());
    return try_window(from, stay);
  }

  // The readers of a value behind position `to`, and all that they need from there on, move before it.
  bool advance(std::int32_t value, std::int32_t to) {
    const std::int32_t last = last_use(value);
    count_if_large(std::max(last - to, 0));
    std::vector<std::int32_t> stay, go;
    for (std::int32_t r : p_.readers[value])
      if (position_[r] > to) in_block_[r] = 1;
    for (std::int32_t i = last; i >= to; --i) {
      const std::int32_t at = order_[i];
      if (in_block_[at])
        for (std::int32_t b : p_.before[at])
          if (position_[b] >= to) in_block_[b] = 1;
      (in_block_[at] ? go : stay).push_back(at);
    }
    for (std::int32_t g : go) in_block_[g] = 0;
    if (stay.empty() || go.empty()) return false;
    std::reverse(go.begin(), go.end());
    go.insert(go.end(), stay.rbegin(), stay.rend());
    return try_window(to, go);
  }

  bool make_later(std::int32_t v) {
    if (delay(v, at_)) return true;
    std::int32_t first = static_cast<std::int32_t>(order_.size());
    for (std::int32_t r : p_.readers[v]) first = std::min(first, position_[r]);
    return first - 1 > at_ && delay(v, first - 1);
  }

  bool read_earlier(std::int32_t v) {
    if (advance(v, at_)) return true;
    std::int32_t previous = first_use(v);
    for (std::int32_t r : p_.readers[v])
      if (position_[r] < at_) previous = std::max(previous, position_[r]);
    return previous + 1 < at_ && advance(v, previous + 1);
  }

  // Takes these items at these positions if that is better, else leaves all as it was.
  bool try_window(std::int32_t first, const std::vector<std::int32_t>& items) {
    const std::size_t n = items.size();
    work_ += static_cast<std::int64_t>(4 * n);
    const std::vector<std::int32_t> old(order_.begin() + first, order_.begin() + first + static_cast<std::ptrdiff_t>(n));
    std::int64_t before = first_alive(first);
    place(first, items);
    std::vector<std::int64_t> live;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < n && most <= peak_; ++i) {
      live.push_back(live_while(items[i], first + static_cast<std::int32_t>(i), &before));
      most = std::max(most, live.back());
    }
    const auto peaks = [&](const std::int64_t* begin, const std::int64_t* end) { return std::count(begin, end, peak_); };
    const bool better = most <= peak_ && peaks(live.data(), live.data() + n) < peaks(&live_[first], &live_[first] + n);
    if (better)
      std::copy(live.begin(), live.end(), live_.begin() + first);
    else
      place(first, old);
    return better;
  }

  void place(std::int32_t first, const std::vector<std::int32_t>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      order_[static_cast<std::size_t>(first) + i] = items[i];
      position_[items[i]] = first + static_cast<std::int32_t>(i);
    }
  }

  // Bytes kept from before a position to it or beyond: those alive there, less what is its item's own.
  std::int64_t first_alive(std::int32_t at) const {
    const std::int32_t item = order_[at];
    std::int64_t bytes = live_[at] - p_.scratch[item] + taken_over(item, at);
    for (std::int32_t v : p_.makes[item]) bytes -= p_.bytes[v];
    for (std::int32_t v : p_.opens[item])
      if (first_use(v) == at) bytes -= p_.bytes[v];
    return bytes;
  }

  // Live bytes while an item runs; `alive` goes from what is kept up to it to what is kept beyond.
  std::int64_t live_while(std::int32_t item, std::int32_t at, std::int64_t* alive) {
    std::int64_t made = 0, freed = 0;
    for (std::int32_t v : p_.makes[item]) {
      made += p_.bytes[v];
      if (p_.readers[v].empty()) freed += p_.bytes[v];
    }
    for (std::int32_t v : p_.opens[item])
      if (first_use(v) == at) made += p_.bytes[v];
    for (std::int32_t v : p_.reads[item])
      if (last_use(v) == at) freed += p_.bytes[v];
    const std::int64_t live = *alive + made + p_.scratch[item] - taken_over(item, at);
    *alive += made - freed;
    return live;
  }

  std::int64_t taken_over(std::int32_t item, std::int32_t at) const {
    std::int64_t bytes = 0;
    take_over_in_place(
        p_.handovers_of(item), [&](std::int32_t v) { return last_use(v) == at; },
        [&](const Handover& h) { bytes += p_.bytes[h.from]; });
    return bytes;
  }

  const OrderProblem& p_;
  const OrderClimb& climb_;
  ItemOrder order_;
  std::vector<std::int32_t> position_;  // by item
  std::vector<char> in_block_;          // by item: scratch of the moves
  std::vector<std::int64_t> live_;      // by position
  std::int64_t peak_ = 0, work_ = 0;
  std::int32_t at_ = 0;  // the first position at the peak
};

}  // namespace

Climbed climb_order(const OrderProblem& problem, const ItemOrder& start, const OrderClimb& climb) {
  return Climber(problem, start, climb).climb();
}

}  // namespace tapedeck
