#include <tapedeck/capture/planner/candidates.h>

#include <tapedeck/capture/planner/facts/unit_costs.h>
#include <tapedeck/capture/planner/improve_by_search.h>
#include <tapedeck/capture/planner/improve_in_turn.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/solve_for_budget.h>

#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

// The strategies that choose at unit costs and at real costs, or once if they do not read costs.
bool sets_floor(const StrategyEntry& s, const Planning& p) {
  return s.choose && s.taken_for == TakenFor::budget && p.is_in_auto(s);
}

// The strategies that every plan asks come first, because the first of equal candidates is taken.
std::vector<const StrategyEntry*> strategies_that_choose(const Planning& p) {
  std::vector<const StrategyEntry*> strategies;
  for (const StrategyEntry* s : all_strategies())
    if (s->choose && p.asks(*s)) strategies.push_back(s);
  std::stable_partition(strategies.begin(), strategies.end(),
                        [](const StrategyEntry* s) { return s->in_auto == InAuto::always; });
  return strategies;
}

// A strategy that is to choose in an order. No two of them need each other, so they choose at the same time.
struct Choosing {
  Order* order = nullptr;
  const StrategyEntry* strategy = nullptr;
  bool for_floor = false;  // at unit costs
  Choices choices = {};
};

void add_choosing_at_real_costs(Order* order, const Planning& p, std::vector<Choosing>* work) {
  const bool for_budgets = p.effort.looks_for_floor() && p.look_for != LookFor::floor;
  for (const StrategyEntry* s : strategies_that_choose(p)) {
    if (s->taken_for != TakenFor::wishes && !for_budgets) continue;
    if (sets_floor(*s, p) && !s->reads_costs) continue;
    work->push_back({order, s, false});
  }
}

void add_choosing_at_unit_costs(Order* order, const Planning& p, std::vector<Choosing>* work) {
  if (!p.effort.looks_for_floor()) return;
  for (const StrategyEntry* s : strategies_that_choose(p))
    if (sets_floor(*s, p)) work->push_back({order, s, true});
}

Choices choose_at_real_costs(const StrategyEntry& s, const Facts& facts, const Planning& p, const Watch& watch) {
  Choices choices = s.choose(facts, watch);
  for (ChoicePoint& point : choices.points) point.for_budget |= sets_floor(s, p);
  return choices;
}

Choices choose_at_unit_costs(const StrategyEntry& s, const Facts& facts, const Watch& watch) {
  if (!s.reads_costs) return s.choose(facts, watch);
  Choices choices = s.choose(at_unit_costs(facts), watch);
  choices.decisions.clear();  // their costs are no microseconds
  for (ChoicePoint& point : choices.points) point.decisions = kNone;
  return choices;
}

// Progress is told from the thread of the caller alone. It takes part in the work, so there is always something to tell.
Watch told_by_caller(const Watch& watch) {
  return {watch.cancel, [&watch, caller = std::this_thread::get_id()](double done) {
            if (std::this_thread::get_id() == caller) watch.report(done);
          }};
}

// Lets all strategies choose in the orders, on all threads. The choices of one strategy in one order follow from these two
// alone.
void choose_in(const std::vector<Order*>& orders, const Planning& p) {
  std::vector<Choosing> work;
  for (Order* order : orders) {
    add_choosing_at_real_costs(order, p, &work);
    add_choosing_at_unit_costs(order, p, &work);
  }
  const Watch watch = told_by_caller(p.watch);
  kernels::parallel_for(static_cast<std::int64_t>(work.size()), 1, [&](std::int64_t first, std::int64_t last) {
    for (Choosing* w = &work[static_cast<std::size_t>(first)]; w != work.data() + last; ++w) {
      watch.check();
      const Facts& facts = w->order->facts;
      w->choices =
          w->for_floor ? choose_at_unit_costs(*w->strategy, facts, watch) : choose_at_real_costs(*w->strategy, facts, p, watch);
    }
  });
  for (Choosing& w : work) (w.for_floor ? w.order->for_floor : w.order->chosen).push_back({w.strategy, std::move(w.choices)});
}

void add_points_of(const Order& order, Planning* p) {
  add_keep_all(order, p);
  for (const StrategyChoices& chosen : order.chosen) add_points(order, chosen, p);
  for (const StrategyChoices& chosen : order.for_floor) add_points(order, chosen, p);
}

constexpr std::size_t kManyNodes = 5000;  // beyond, a walk over all runs for each point would take seconds

// What the runs after a part of a journal cost, and how many they are. Few nodes are summed as schedule_cost() does. The costs
// of many nodes are summed in blocks, of which each point sums only those that changed since the point before. Equal runs have
// equal sums in both ways, whatever led to them.
class RunsOnTheWay {
 public:
  explicit RunsOnTheWay(const Facts& facts) : facts_(facts), count_(facts.graph->node_count()) {
    if (facts.graph->nodes.size() <= kManyNodes) {
      runs_ = runs_as_recorded(facts);
      return;
    }
    repeated_.assign(facts.graph->nodes.size(), 0);
    blocks_.resize(repeated_.size() / kBlock + 1);
  }

  void take(const std::vector<Step>& journal, std::size_t first, std::size_t last) {
    if (repeated_.empty()) apply_steps(journal, first, last, &runs_);
    for (std::size_t i = first; i < last; ++i) {
      const std::int32_t change = journal[i].added ? 1 : -1;
      count_ += change;
      if (repeated_.empty()) continue;
      repeated_[journal[i].node] += change;
      blocks_[static_cast<std::size_t>(journal[i].node) / kBlock].changed = true;
    }
  }

  double cost() {
    if (repeated_.empty()) return schedule_cost(facts_, runs_);
    double us = facts_.keep_all_cost;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (std::exchange(blocks_[b].changed, false)) blocks_[b].us = sum(b);
      us += blocks_[b].us;
    }
    return us;
  }

  std::int64_t count() const { return count_; }

 private:
  static constexpr std::size_t kBlock = 256;
  struct Block {
    double us = 0;
    bool changed = false;
  };

  double sum(std::size_t block) const {
    double us = 0;
    for (std::size_t n = block * kBlock; n < std::min((block + 1) * kBlock, repeated_.size()); ++n)
      us += repeated_[n] * facts_.cost[n];
    return us;
  }

  const Facts& facts_;
  std::int64_t count_;
  RunLists runs_;                       // of few nodes
  std::vector<std::int32_t> repeated_;  // by node, of many: its runs beyond the first
  std::vector<Block> blocks_;           // of their costs
};

}  // namespace

void add_points(const Order& order, const StrategyChoices& chosen, Planning* p) {
  RunsOnTheWay runs(order.facts);
  std::size_t done = 0;
  for (const ChoicePoint& point : chosen.choices.points) {
    if (point.journal == 0) continue;  // keeps all
    p->watch.check();
    runs.take(chosen.choices.journal, done, point.journal);
    done = point.journal;
    const std::int64_t live_peak = order.facts.external_bytes + point.live_peak;
    p->candidates.push_back(
        {chosen.strategy, &order, &chosen.choices, point, runs.cost(), live_peak, -1, p->candidates.size()});
    p->candidates.back().runs = runs.count();
  }
}

StepSize size_of(const Order& order) {
  return {order.graph.nodes.size(), order.graph.values.size(), order.facts.keep_all_cost};
}

void add_keep_all(const Order& order, Planning* p) {
  static const Choices none;
  const ChoicePoint point{0, 0, order.live_peak - order.facts.external_bytes};
  p->candidates.push_back(
      {nullptr, &order, &none, point, order.facts.keep_all_cost, order.live_peak, -1, p->candidates.size()});
  p->candidates.back().runs = order.graph.node_count();
}

void add_candidates(const std::vector<Order*>& orders, Planning* p) {
  choose_in(orders, *p);
  for (const Order* order : orders) add_points_of(*order, p);
}

void rematerialize(Planning* p) {
  check_strategy(*p);
  std::vector<Order*> orders;
  for (const auto& order : p->orders) orders.push_back(order.get());
  add_candidates(orders, p);
  if (!p->effort.looks_for_floor() || p->look_for == LookFor::draft) return;
  improve_in_turn(p);
  improve_by_search(p);
}

ClonedGraph graph_of(const Candidate& c) {
  ClonedGraph cloned = clone_graph(c.order->facts, runs_after(c.order->facts, c.choices->journal, c.point.journal));
  return c.moved.empty() ? cloned : reorder(cloned, c.moved);
}

}  // namespace tapedeck
