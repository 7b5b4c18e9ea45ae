// The stage of orders. First stands the order of the program. A search looks for an order that keeps fewer bytes alive. Each of
// the two also comes with parts in place (joins/join_choice.h). An order that was found for values apart need not suit parts,
// so at last an order and a choice of parts are looked for together (joins/join_orders.h).
#include <tapedeck/capture/planner/orders.h>

#include <tapedeck/capture/planner/honour_wishes.h>
#include <tapedeck/capture/planner/joins/join_choice.h>
#include <tapedeck/capture/planner/joins/join_orders.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/region_plans.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tapedeck {

bool Order::has_wishes(const StrategyEntry* strategy) const {
  return std::any_of(chosen.begin(), chosen.end(), [&](const StrategyChoices& c) {
    const bool asked = !strategy || c.strategy == strategy;
    return asked && c.strategy->taken_for == TakenFor::wishes && !c.choices.journal.empty();
  });
}

std::unique_ptr<Order> make_order(std::string name, Graph graph, const PlanOptions& options, double keep_all_cost) {
  auto order = std::make_unique<Order>();
  order->name = std::move(name);
  order->graph = std::move(graph);
  order->facts =
      collect_facts(order->graph, node_workspaces(order->graph), options.costs.get(), options.sharing & ~Sharing::parts);
  if (keep_all_cost >= 0) order->facts.keep_all_cost = keep_all_cost;
  note_wishes(options.wishes, &order->facts);
  order->live_peak = order->facts.external_bytes + peak_without_clones(order->facts);
  return order;
}

namespace {

// Summed by size, so that equal copies saved are equal costs in every order.
double saved_by_parts(const Facts& apart, const Facts& joined) {
  std::vector<double> saved;
  for (std::size_t n = 0; n < apart.cost.size(); ++n)
    if (apart.cost[n] != joined.cost[n]) saved.push_back(apart.cost[n] - joined.cost[n]);
  std::sort(saved.begin(), saved.end());
  return std::accumulate(saved.begin(), saved.end(), 0.0);
}

// The same order of nodes, with parts in the bytes of the value that joins them (analysis/parts.h) where this does not raise
// the peak. share_parts() makes at most `join_trials` trials, and tries `first` before others. Null if no part lies in its
// join.
std::unique_ptr<Order> with_parts(const Order& apart, int join_trials, const PartChoice& first = {}) {
  if (!may_share_parts(apart.facts)) return nullptr;
  auto order = std::make_unique<Order>();
  order->facts = apart.facts;
  share_parts(Readers(apart.graph), &order->facts, join_trials, first);
  if (!order->facts.has_parts) return nullptr;
  order->name = apart.name;
  order->graph = apart.graph;
  order->nodes = apart.nodes;
  order->facts.graph = &order->graph;
  const double saved = saved_by_parts(apart.facts, order->facts);
  order->facts.keep_all_cost = apart.facts.keep_all_cost - saved;
  order->loops = apart.loops;
  order->recorded_cost = apart.recorded_cost - saved;
  order->live_peak = order->facts.external_bytes + peak_without_clones(order->facts);
  return order;
}

void add_searched_order(Planning* p) {
  NodeOrder found;
  const Order& recorded = p->recorded();
  Graph graph = p->passes.run("order", recorded.graph, [&](Graph g) {
    found = find_order(recorded.facts, g, own_sources(g), p->effort.order(p->step_size()));
    return found.nodes.empty() ? g : reorder(g, found.nodes);
  });
  p->watch.check();
  if (found.nodes.empty()) return;
  auto order = make_order(found.name, std::move(graph), p->options, recorded.facts.keep_all_cost);
  order->nodes = std::move(found.nodes);
  add_order(std::move(order), p);
}

const Order& least_order(const Planning& p) {
  const Order* least = &p.recorded();
  for (const auto& order : p.orders)
    if (order->live_peak < least->live_peak) least = order.get();
  return *least;
}

// The order with the fewest bytes alive, its parts in terms of the recorded order.
JoinedOrder as_joined(const Order& order, const Planning& p) {
  const PartChoice parts = choice_of(order.facts.windows);
  const std::int64_t live_peak = order.live_peak - order.facts.external_bytes;
  if (order.nodes.empty()) return {order.name, {}, parts, live_peak};
  return {order.name, order.nodes, move_choice_back(parts, p.recorded().graph, order.nodes, order.graph), live_peak};
}

// In a hurry: another order for the same parts.
JoinedOrder improved(const Order& order, JoinedOrder known, const Planning& p) {
  if (!order.facts.has_parts) return known;
  const NodeOrder found = find_order(order.facts, order.graph, own_sources(order.graph), p.effort.order(p.step_size()));
  if (found.nodes.empty()) return known;
  std::vector<NodeId> nodes;
  for (NodeId n : found.nodes) nodes.push_back(order.nodes.empty() ? n : order.nodes[n]);
  return {found.name, std::move(nodes), std::move(known.parts), found.live_peak};
}

void add_joined_order(Planning* p) {
  const Order& recorded = p->recorded();
  if (!may_share_parts(recorded.facts) || !p->effort.orders_joins(p->step_size())) return;
  const Order& least = least_order(*p);
  const JoinedOrder known = as_joined(least, *p);
  JoinedOrder found = known;
  Graph graph = p->passes.run("order", recorded.graph, [&](Graph g) {
    found = p->effort.looks_for_floor() ? find_joined_order(recorded.facts, known, p->effort.order(p->step_size()))
                                        : improved(least, known, *p);
    if (found.nodes.empty()) found.nodes = own_sources(g);
    return found.live_peak < known.live_peak ? reorder(g, found.nodes) : g;
  });
  p->watch.check();
  if (found.live_peak >= known.live_peak) return;
  auto apart = make_order(found.name, std::move(graph), p->options, recorded.facts.keep_all_cost);
  const PartChoice parts = move_choice(found.parts, recorded.graph, found.nodes, apart->graph);
  apart->nodes = std::move(found.nodes);
  std::unique_ptr<Order> joined = with_parts(*apart, p->effort.join_trials(p->step_size()), parts);
  p->orders.push_back(joined ? std::move(joined) : std::move(apart));
}

}  // namespace

void add_order(std::unique_ptr<Order> order, Planning* p) {
  p->orders.push_back(std::move(order));
  p->watch.check();
  if (!has(p->options.sharing, Sharing::parts)) return;
  if (std::unique_ptr<Order> joined = with_parts(*p->orders.back(), p->effort.join_trials(p->step_size())))
    p->orders.push_back(std::move(joined));
}

void find_orders(Graph prepared, Planning* p) {
  add_order(make_order("recorded", std::move(prepared), p->options), p);
  if (p->options.ordering != Ordering::automatic) return;
  add_searched_order(p);
  if (has(p->options.sharing, Sharing::parts)) add_joined_order(p);
}

std::vector<const Order*> orders_to_vary(const Planning& p) {
  const Order* least = &p.recorded();
  for (const auto& order : p.orders)
    if (!order->facts.has_parts && order->live_peak < least->live_peak) least = order.get();
  if (least == &p.recorded()) return {least};
  return {&p.recorded(), least};
}

}  // namespace tapedeck
