// The list schedules, each one walk over the items. Items that wait for nothing stand in a row, and a rule takes one of them:
//
//     ready: b c d       breadth first takes b      depth first takes d      least peak first takes the item that leaves least
//
// reversed_least_peak() walks the problem backwards: makers become readers and the other way round (reversed).
#include <tapedeck/capture/planner/order/list_schedules.h>

#include <tapedeck/capture/planner/order/done_set.h>

#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int32_t kFewItems = 1000;  // all rules are done with so few before another thread has begun

std::vector<std::int32_t> waits_of(const OrderProblem& p) {
  std::vector<std::int32_t> waits;
  for (std::int32_t i = 0; i < p.item_count(); ++i) waits.push_back(static_cast<std::int32_t>(p.before[i].size()));
  return waits;
}

// The items that could run next stand in a row; newest: the last of them runs, else the first.
ItemOrder walk(const OrderProblem& p, bool newest) {
  std::vector<std::int32_t> waits = waits_of(p), row;
  for (std::int32_t i = 0; i < p.item_count(); ++i)
    if (waits[i] == 0) row.push_back(i);
  if (newest) std::reverse(row.begin(), row.end());
  ItemOrder order;
  for (std::size_t front = 0; order.size() < waits.size();) {
    const std::int32_t item = newest ? row.back() : row[front++];
    if (newest) row.pop_back();
    order.push_back(item);
    const std::size_t old = row.size();
    for (std::int32_t next : p.behind[item])
      if (--waits[next] == 0) row.push_back(next);
    if (newest) std::reverse(row.begin() + static_cast<std::ptrdiff_t>(old), row.end());
  }
  return order;
}

// The problem read backwards: what is made is what is read, and the other way round. Live bytes are those of the reversed
// order.
OrderProblem reversed(const OrderProblem& p) {
  const std::int32_t n = p.item_count();
  OrderProblem r;
  r.bytes = p.bytes;
  r.maker.assign(p.bytes.size(), kNone);
  const auto append = [&](NumberLists* to, std::span<const std::int32_t> items) {
    for (std::int32_t i : items) to->numbers.push_back(n - 1 - i);
    to->close();
  };
  for (std::int32_t i = n - 1; i >= 0; --i) {
    r.node.push_back(p.node[i]);
    r.scratch.push_back(p.scratch[i]);
    append(&r.before, p.behind[i]);
    append(&r.behind, p.before[i]);
    r.first_handover.push_back(0);
  }
  // A value is born with the first of its users to run, whichever that is. That is more than a maker can say, so its last
  // reader stands for it.
  std::vector<std::vector<std::int32_t>> reads(static_cast<std::size_t>(n)), makes(static_cast<std::size_t>(n));
  for (std::int32_t v = 0; v < p.value_count(); ++v) {
    const auto readers = p.readers[v];
    const std::int32_t born = readers.empty() ? p.maker[v] : readers.front();
    makes[n - 1 - born].push_back(v);
    r.maker[v] = n - 1 - born;
    r.openers.close();
    if (born == p.maker[v]) {
      r.readers.close();
      continue;
    }
    for (std::size_t k = 1; k < readers.size(); ++k) reads[n - 1 - readers[k]].push_back(v);
    if (p.maker[v] != kNone) {  // whoever opens a whole is among its readers
      reads[n - 1 - p.maker[v]].push_back(v);
      r.readers.numbers.push_back(n - 1 - p.maker[v]);
    }
    for (std::size_t k = readers.size(); k-- > 1;) r.readers.numbers.push_back(n - 1 - readers[k]);
    r.readers.close();
  }
  for (std::int32_t i = 0; i < n; ++i) {
    r.reads.numbers.insert(r.reads.numbers.end(), reads[i].begin(), reads[i].end());
    r.reads.close();
    r.makes.numbers.insert(r.makes.numbers.end(), makes[i].begin(), makes[i].end());
    r.makes.close();
    r.opens.close();
  }
  return r;
}

// What the best successor that waits for `item` alone would add after it; 0 if none would lower it.
std::int64_t best_behind(const OrderProblem& p, const DownSet& set, std::int32_t item) {
  std::int64_t best = 0;
  for (std::int32_t next : p.behind[item]) {
    const auto before = p.before[next];
    if (std::any_of(before.begin(), before.end(), [&](std::int32_t b) { return b != item && !set.has_run(b); })) continue;
    std::int64_t net = 0;
    for (std::int32_t v : p.makes[next])
      if (!p.readers[v].empty()) net += p.bytes[v];
    for (std::int32_t v : p.opens[next]) {
      const auto openers = p.openers[v];
      if (std::none_of(openers.begin(), openers.end(), [&](std::int32_t o) { return o == item || set.has_run(o); }))
        net += p.bytes[v];
    }
    for (std::int32_t v : p.reads[next]) {
      const auto readers = p.readers[v];
      if (std::all_of(readers.begin(), readers.end(), [&](std::int32_t r) { return r == next || r == item || set.has_run(r); }))
        net -= p.bytes[v];
    }
    best = std::min(best, net);
  }
  return best;
}

}  // namespace

ItemOrder recorded_order(const OrderProblem& p) {
  ItemOrder order(static_cast<std::size_t>(p.item_count()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

ItemOrder breadth_first(const OrderProblem& p) { return walk(p, false); }
ItemOrder depth_first(const OrderProblem& p) { return walk(p, true); }

ItemOrder on_demand(const OrderProblem& p) {
  ItemOrder order;
  std::vector<char> seen(static_cast<std::size_t>(p.item_count()), 0);
  struct Visit {
    std::int32_t item;
    std::size_t left;  // of what it waits for, the latest first
  };
  std::vector<Visit> stack;
  const auto visit = [&](std::int32_t item) {
    if (std::exchange(seen[item], 1) == 0) stack.push_back({item, p.before[item].size()});
  };
  for (std::int32_t sink = 0; sink < p.item_count(); ++sink) {
    if (p.behind[sink].empty()) visit(sink);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.left > 0) {
        const std::int32_t next = p.before[top.item][--top.left];
        visit(next);
      } else {
        order.push_back(top.item);
        stack.pop_back();
      }
    }
  }
  return order;
}

ItemOrder least_peak_first(const OrderProblem& p, bool ahead, const std::atomic<bool>* cancel) {
  OrderStepper stepper(p);
  DownSet set = stepper.start();
  ItemOrder order;
  while (!set.ready.empty()) {
    if (cancel && cancel->load(std::memory_order_relaxed)) return recorded_order(p);
    std::size_t best = 0;
    std::tuple<std::int64_t, std::int64_t, std::int32_t> least{std::numeric_limits<std::int64_t>::max(), 0, 0};
    for (std::size_t i = 0; i < set.ready.size(); ++i) {
      const ReadyItem& r = set.ready[i];
      const std::int64_t raised = std::max<std::int64_t>(0, set.live + r.extra - set.peak);
      if (raised > std::get<0>(least)) continue;
      const std::tuple rank{raised, r.net + (ahead ? best_behind(p, set, r.item) : 0), r.item};
      if (rank >= least) continue;
      least = rank;
      best = i;
    }
    order.push_back(set.ready[best].item);
    stepper.run(&set, best);
  }
  return order;
}

ItemOrder reversed_least_peak(const OrderProblem& p, const std::atomic<bool>* cancel) {
  ItemOrder order = least_peak_first(reversed(p), false, cancel);
  std::reverse(order.begin(), order.end());
  for (std::int32_t& item : order) item = p.item_count() - 1 - item;
  return order;
}

std::vector<ListOrder> list_orders(const OrderProblem& p, const std::atomic<bool>* cancel) {
  const std::pair<const char*, std::function<ItemOrder()>> rules[] = {
      {"recorded", [&] { return recorded_order(p); }},
      {"breadth first", [&] { return breadth_first(p); }},
      {"depth first", [&] { return depth_first(p); }},
      {"least peak first", [&] { return least_peak_first(p, false, cancel); }},
      {"on demand", [&] { return on_demand(p); }},
      {"least peak ahead", [&] { return least_peak_first(p, true, cancel); }},
      {"least peak reversed", [&] { return reversed_least_peak(p, cancel); }}};
  std::vector<ListOrder> orders(std::size(rules));
  const std::int64_t count = std::ssize(orders), grain = p.item_count() < kFewItems ? count : 1;
  kernels::parallel_for(count, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) orders[i] = {rules[i].first, rules[i].second()};
  });
  return orders;
}

}  // namespace tapedeck
