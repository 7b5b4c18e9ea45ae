// The bound holds for every order of the same nodes (rematerialize/cost_bound.h), so one of the orders without parts answers
// for all of them. Orders with parts in place copy less and cannot make parts again, so each of them has a bound of its own,
// and so has each choice of the ways of loops. The least bound is a bound on all plans.
#include <tapedeck/capture/planner/bound_cost.h>

#include <tapedeck/capture/planner/planning.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

std::string name_of(const Graph& graph, NodeId n) {
  const Node& node = graph.nodes[n];
  return node.n_outputs > 0 ? '%' + graph.value_name(node.first_output) : fmt::format("node {}", n);
}

}  // namespace

BoundedCosts::Bound BoundedCosts::bound_in(std::size_t order, std::int64_t budget) {
  const Order& in = *planning_.orders[order];
  std::unique_ptr<CostBounds>& bounds = bounds_[order];
  if (!bounds) bounds = std::make_unique<CostBounds>(in.facts, planning_.watch);
  const CostBound cost = bounds->at(budget);
  return {&in, cost, in.facts.keep_all_cost + cost.extra_us};
}

BoundedCosts::Bound BoundedCosts::least(std::int64_t budget) {
  Bound least = bound_in(0, budget);
  for (std::size_t i = 1; i < planning_.orders.size(); ++i) {
    const Facts& facts = planning_.orders[i]->facts;
    if ((!facts.has_parts && !planning_.orders[i]->has_other_ways()) ||
        (least.cost.may_fit && facts.keep_all_cost >= least.total_us))
      continue;
    const Bound bound = bound_in(i, budget);
    if (bound.cost.may_fit && (!least.cost.may_fit || bound.total_us < least.total_us)) least = bound;
  }
  return least;
}

void BoundedCosts::note(Plan* plan) {
  if (plan->budget_bytes < 0) return;
  const Bound bound = least(plan->budget_bytes);
  if (!bound.cost.may_fit) {
    plan->bound_from = fmt::format("no plan fits: {} bytes that no plan can give up are alive at {}", bound.cost.stuck_bytes,
                                   name_of(bound.order->graph, bound.cost.at));
    return;
  }
  plan->cost_lower_bound_us = bound.total_us;
  const char* const kept = bound.order->has_other_ways() ? "other ways of loops: no value has to be made again"
                                                         : "keep all: nothing has to be made again";
  plan->bound_from = bound.cost.at == kNone ? kept : "knapsack at " + name_of(bound.order->graph, bound.cost.at);
}

}  // namespace tapedeck
