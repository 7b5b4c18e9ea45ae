#include <tapedeck/capture/planner/improve_by_search.h>

#include <tapedeck/capture/planner/planning.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kMostOrders = 2;
constexpr std::int64_t kSamples = 16;  // budgets at which orders are compared

const StrategyChoices* greedy_choices(const Order& order) {
  const StrategyEntry* greedy = find_strategy(Strategy::greedy);
  for (const StrategyChoices& chosen : order.chosen)
    if (chosen.strategy == greedy) return &chosen;
  return nullptr;
}

std::int64_t most_live(const Planning& p) { return p.recorded().live_peak; }

// The costs of an order's cheapest candidates that fit, summed over budgets between the least live peak of all candidates and
// the recorded order's. A budget that no candidate fits counts as one more run of the whole step.
double summed_costs(const Order& order, std::int64_t least, const Planning& p) {
  double sum = 0;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const std::int64_t budget = least + (most_live(p) - least) / kSamples * i;
    double cost = 2 * p.recorded().facts.keep_all_cost;
    for (const Candidate& c : p.candidates)
      if (c.order == &order && c.live_peak <= budget) cost = std::min(cost, c.cost);
    sum += cost;
  }
  return sum;
}

// Equal sums leave the orders as they are. A strategy that looks at one budget begins with plans in the recorded order.
std::vector<Order*> most_promising_orders(const Planning& p) {
  const StrategyEntry* asked = find_strategy(p.options.strategy);
  if (asked && asked->solve) return {p.orders.front().get()};
  const std::int64_t least = least_live(p.candidates, [](const Candidate&) { return true; }).live_peak;
  std::vector<std::pair<double, Order*>> rated;
  for (const auto& order : p.orders)
    if (greedy_choices(*order)) rated.emplace_back(summed_costs(*order, least, p), order.get());
  std::stable_sort(rated.begin(), rated.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Order*> orders;
  for (std::size_t i = 0; i < std::min(rated.size(), kMostOrders); ++i) orders.push_back(rated[i].second);
  return orders;
}

}  // namespace

void improve_by_search(Planning* p) {
  for (const StrategyEntry* s : all_strategies()) {
    if (!s->improve || (!s->automatic && s != find_strategy(p->options.strategy))) continue;
    for (Order* order : most_promising_orders(*p)) {
      p->watch.check();
      order->improved.push_back({s, s->improve(order->facts, greedy_choices(*order)->choices, p->look_for, p->watch)});
      add_points(*order, order->improved.back(), p);
    }
  }
}

}  // namespace tapedeck
