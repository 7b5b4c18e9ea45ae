// Takes 32, 128, then 512 items around the peak out of the order, and has their sets searched as a problem of its own:
//
//     order      0 1 2 [3 4 5 6] 7 8 9
//     problem    s  3 4 5 6  e          s makes the bytes that come in, e reads the bytes that are needed behind
//
// The search asks for a sixteenth less than the peak first, then for any less.
#include <tapedeck/capture/planner/order/stretch_search.h>

#include <tapedeck/capture/planner/order/set_search.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::int32_t kWidth = 8;
constexpr std::int32_t kSizes[] = {32, 128, 512};  // items of a stretch

class StretchSearcher {
 public:
  StretchSearcher(const OrderProblem& problem, StretchSearch* search, ItemOrder* order)
      : p_(problem), search_(search), order_(*order), position_(order->size()), local_(problem.bytes.size(), kNone) {
    refresh();
  }

  std::int64_t run() {
    while (peak() > search_->bound && !tired() && improve()) refresh();
    return peak();
  }

 private:
  // A value of the stretch: its maker or the items that may open it, and its readers, by their numbers in the stretch.
  struct Span {
    std::int32_t value = kNone, maker = 0;
    std::vector<std::int32_t> readers, openers;
  };

  bool tired() const { return search_->work <= 0 || (search_->cancel && search_->cancel->load()); }
  std::int64_t peak() const { return live_.empty() ? 0 : live_[at_]; }

  void refresh() {
    for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<std::int32_t>(i);
    live_ = live_in_order(p_, order_);
    at_ = static_cast<std::int32_t>(std::max_element(live_.begin(), live_.end()) - live_.begin());
    search_->work -= static_cast<std::int64_t>(order_.size());
  }

  bool improve() {
    const auto n = static_cast<std::int32_t>(order_.size());
    for (std::int32_t size : kSizes) {
      const std::int32_t first = std::clamp(at_ - size / 2, 0, std::max(0, n - size)), last = std::min(n, first + size) - 1;
      if (better_stretch(first, last)) return true;
      if (tired() || size >= n) break;
    }
    return false;
  }

  bool better_stretch(std::int32_t first, std::int32_t last) {
    const OrderProblem stretch = make_stretch(first, last);
    ItemOrder as_is;
    for (std::int32_t i = 0; i < stretch.item_count(); ++i) as_is.push_back(i);
    const std::int64_t elsewhere = live_[first] - live_in_order(stretch, as_is)[1];
    const std::int64_t now = peak() - elsewhere;
    for (const std::int64_t wanted : {now - now / 16 - 1, now - 1}) {
      if (wanted < 0 || tired()) continue;
      const OrderFound found = search_orders(stretch, {wanted + 1, wanted, kWidth, kWidth, search_->work, search_->cancel});
      search_->work -= found.work;
      if (found.items.empty()) continue;
      const ItemOrder old(order_.begin() + first, order_.begin() + last + 1);
      for (std::int32_t k = first; k <= last; ++k) order_[k] = old[found.items[static_cast<std::size_t>(k - first) + 1] - 1];
      return true;
    }
    return false;
  }

  // Item 0 makes what comes in, items 1.. are those of the stretch, the last one reads what is needed behind it.
  OrderProblem make_stretch(std::int32_t first, std::int32_t last) {
    const std::int32_t end = last - first + 2;
    std::vector<Span> spans = find_spans(first, last);
    std::vector<std::vector<std::int32_t>> before(static_cast<std::size_t>(end) + 1), behind = before, reads = before,
                                                                                      makes = before, opens = before;
    for (std::int32_t i = 1; i < end; ++i) {
      before[i].push_back(0);
      before[end].push_back(i);
      for (std::int32_t b : p_.before[order_[first + i - 1]])
        if (position_[b] >= first) before[i].push_back(position_[b] - first + 1);
    }
    for (std::int32_t i = 0; i <= end; ++i) {
      std::sort(before[i].rbegin(), before[i].rend());
      for (std::int32_t b : before[i]) behind[b].push_back(i);
    }
    OrderProblem w;
    for (std::int32_t v = 0; v < static_cast<std::int32_t>(spans.size()); ++v) {
      Span& span = spans[v];
      w.bytes.push_back(p_.bytes[span.value]);
      w.maker.push_back(span.maker);
      if (span.maker != kNone) makes[span.maker].push_back(v);
      for (std::int32_t o : span.openers) opens[o].push_back(v);
      append(span.openers, &w.openers);
      std::sort(span.readers.rbegin(), span.readers.rend());
      for (std::int32_t r : span.readers) reads[r].push_back(v);
      append(span.readers, &w.readers);
    }
    for (std::int32_t i = 0; i <= end; ++i) {
      const bool inside = i > 0 && i < end;
      const std::int32_t item = inside ? order_[first + i - 1] : kNone;
      w.node.push_back(kNone);
      w.scratch.push_back(inside ? p_.scratch[item] : 0);
      append(before[i], &w.before);
      append(behind[i], &w.behind);
      append(reads[i], &w.reads);
      append(makes[i], &w.makes);
      append(opens[i], &w.opens);
      if (inside)
        for (const Handover& h : p_.handovers_of(item)) w.handovers.push_back({local_[h.from], local_[h.to]});
      w.first_handover.push_back(static_cast<std::int32_t>(w.handovers.size()));
    }
    for (const Span& span : spans) local_[span.value] = kNone;
    return w;
  }

  static void append(const std::vector<std::int32_t>& list, NumberLists* to) {
    to->numbers.insert(to->numbers.end(), list.begin(), list.end());
    to->close();
  }

  std::vector<Span> find_spans(std::int32_t first, std::int32_t last) {
    std::vector<Span> spans;
    const auto note = [&](std::int32_t v) {
      if (local_[v] != kNone) return;
      local_[v] = static_cast<std::int32_t>(spans.size());
      Span span{v, std::max(0, position_[first_maker(p_, v, position_)] - first + 1), {}, {}};
      if (p_.maker[v] == kNone && span.maker > 0) find_openers(first, last, &span);
      bool later = false;
      for (std::int32_t r : p_.readers[v]) {
        if (position_[r] > last)
          later = true;
        else if (position_[r] >= first)
          span.readers.push_back(position_[r] - first + 1);
      }
      if (later) span.readers.push_back(last - first + 2);
      spans.push_back(std::move(span));
    };
    for (std::int32_t i = first; i <= last; ++i) {
      for (std::int32_t v : p_.reads[order_[i]]) note(v);
      for (std::int32_t v : p_.makes[order_[i]]) note(v);
    }
    return spans;
  }

  // Of a whole that is opened within the stretch.
  void find_openers(std::int32_t first, std::int32_t last, Span* span) const {
    span->maker = kNone;
    for (std::int32_t o : p_.openers[span->value])
      if (position_[o] <= last) span->openers.push_back(position_[o] - first + 1);
    std::sort(span->openers.begin(), span->openers.end());
  }

  const OrderProblem& p_;
  StretchSearch* search_;
  ItemOrder& order_;
  std::vector<std::int32_t> position_;  // by item
  std::vector<std::int32_t> local_;     // by value: its number in the stretch
  std::vector<std::int64_t> live_;      // by position
  std::int32_t at_ = 0;                 // the first position in the whole order at which the most bytes are live
};

}  // namespace

std::int64_t search_stretches(const OrderProblem& problem, StretchSearch* search, ItemOrder* order) {
  return StretchSearcher(problem, search, order).run();
}

}  // namespace tapedeck
