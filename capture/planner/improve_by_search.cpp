#include <tapedeck/capture/planner/improve_by_search.h>

#include <tapedeck/capture/planner/facts/unit_costs.h>
#include <tapedeck/capture/planner/planning.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kMostOrders = 2;
constexpr std::int64_t kSamples = 16;  // budgets at which orders are compared
constexpr double kFarBehind = 2;       // an order that costs so many times as much more than keeping all hardly catches up

// How the orders are compared: by candidates that set the floor at unit costs, or by all candidates at real costs.
struct Yardstick {
  bool for_floor = false;

  bool counts(const Candidate& c) const { return c.rates_orders() && (!for_floor || c.counts_for_floor()); }
  double cost(const Candidate& c) const { return for_floor ? static_cast<double>(c.runs) : c.cost; }
  double keep_all_cost(const Planning& p) const {
    return for_floor ? static_cast<double>(p.step_size().nodes) : p.recorded().facts.keep_all_cost;
  }
  const std::vector<StrategyChoices>& choices(const Order& order) const { return for_floor ? order.for_floor : order.chosen; }
};

// The choices of greedy, or null.
const Choices* greedy_in(const std::vector<StrategyChoices>& choices) {
  const StrategyEntry* greedy = find_strategy(Strategy::greedy);
  for (const StrategyChoices& chosen : choices)
    if (chosen.strategy == greedy) return &chosen.choices;
  return nullptr;
}

// Adds the choices of all strategies but greedy. A strategy that chooses no value is left out.
void add_others(const std::vector<StrategyChoices>& choices, std::vector<const Choices*>* others) {
  const StrategyEntry* greedy = find_strategy(Strategy::greedy);
  for (const StrategyChoices& chosen : choices)
    if (chosen.strategy != greedy && chosen.choices.points.size() > 1) others->push_back(&chosen.choices);
}

std::int64_t most_live(const Planning& p) { return p.recorded().live_peak; }

// The costs of an order's cheapest candidates that fit, summed over budgets between the least live peak of all candidates and
// the recorded order's. A budget that no candidate fits counts as one more run of the whole step.
double summed_costs(const Order& order, std::int64_t least, const Yardstick& by, const Planning& p) {
  double sum = 0;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const std::int64_t budget = least + (most_live(p) - least) / kSamples * i;
    double cost = 2 * by.keep_all_cost(p);
    for (const Candidate& c : p.candidates)
      if (c.order == &order && by.counts(c) && c.live_peak <= budget) cost = std::min(cost, by.cost(c));
    sum += cost;
  }
  return sum;
}

// Equal sums leave the orders as they are. A strategy that looks at one budget begins with plans in the recorded order.
std::vector<Order*> most_promising_orders(const Yardstick& by, const Planning& p) {
  const StrategyEntry* asked = find_strategy(p.options.strategy);
  if (asked && asked->solve) return {p.orders.front().get()};
  const std::int64_t least = least_live(p.candidates, [&](const Candidate& c) { return by.counts(c); }).live_peak;
  std::vector<std::pair<double, Order*>> rated;
  for (const auto& order : p.orders)
    if (greedy_in(by.choices(*order))) rated.emplace_back(summed_costs(*order, least, by, p), order.get());
  std::stable_sort(rated.begin(), rated.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Order*> orders;
  const auto extra = [&](std::size_t i) { return rated[i].first - kSamples * by.keep_all_cost(p); };
  for (std::size_t i = 0; i < std::min(rated.size(), kMostOrders); ++i)
    if (by.for_floor || extra(i) <= kFarBehind * extra(0)) orders.push_back(rated[i].second);
  return orders;
}

const Choices& improve(const StrategyEntry& s, const KnownChoices& known, LookFor look_for, Order* order, Planning* p) {
  p->watch.check();
  const bool for_floor = look_for == LookFor::floor;
  Choices found = s.improve(for_floor ? at_unit_costs(order->facts) : order->facts, known, look_for, p->watch);
  for (ChoicePoint& point : found.points) point.for_budget = !for_floor;
  order->improved.push_back({&s, std::move(found)});
  add_points(*order, order->improved.back(), p);
  return order->improved.back().choices;
}

void improve_twice(const StrategyEntry& s, KnownChoices known, LookFor look_for, Order* order, Planning* p) {
  const std::vector<const Choices*> others = std::exchange(known.others, {});
  known.first.push_back(&improve(s, known, look_for, order, p));
  known.others = others;
  if (!others.empty()) improve(s, known, look_for, order, p);
}

void look_for_floor(const StrategyEntry& s, Planning* p) {
  for (Order* order : most_promising_orders({.for_floor = true}, *p)) {
    KnownChoices known{{greedy_in(order->for_floor)}, {}};
    add_others(order->for_floor, &known.others);
    improve_twice(s, known, LookFor::floor, order, p);
  }
}

// In the archive of an order that was searched for the floor, the plans of that search are known, too.
void look_for_budgets(const StrategyEntry& s, Planning* p) {
  for (Order* order : most_promising_orders({}, *p)) {
    KnownChoices known{{greedy_in(order->chosen), greedy_in(order->for_floor)}, {}};
    add_others(order->chosen, &known.others);
    add_others(order->for_floor, &known.others);
    bool is_first = true;
    for (const StrategyChoices& found : order->improved)
      if (found.strategy == &s) (std::exchange(is_first, false) ? known.first : known.others).push_back(&found.choices);
    improve_twice(s, known, LookFor::budgets, order, p);
  }
}

}  // namespace

void improve_by_search(Planning* p) {
  for (const StrategyEntry* s : all_strategies()) {
    if (!s->improve || !p->asks(*s)) continue;
    look_for_floor(*s, p);
    if (p->look_for == LookFor::budgets) look_for_budgets(*s, p);
  }
}

}  // namespace tapedeck
