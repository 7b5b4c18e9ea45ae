#include <tapedeck/capture/planner/improve_in_turn.h>

#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/planning.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tapedeck {

namespace {

constexpr int kMostImprovingRounds = 4;
constexpr std::int64_t kFarAboveLeast = 8;  // a candidate above the least by more than this part of it will hardly catch up

const Candidate& least_of(const Order& order, const Planning& p) {
  return least_live(p.candidates,
                    [&](const Candidate& c) { return c.order == &order && c.counts_for_floor() && c.rates_orders(); });
}

// The candidate with its nodes moved to where they keep the fewest bytes alive: clones need not run just before their readers.
// Empty if that wins nothing, or if others are far ahead.
std::optional<Candidate> move_nodes(const Candidate& candidate, const Planning& p) {
  if (p.options.ordering != Ordering::automatic || candidate.keeps_all() || !candidate.moved.empty()) return std::nullopt;
  const Facts& facts = candidate.order->facts;
  const ClonedGraph cloned = graph_of(candidate);
  NodeOrder found = find_order(facts, cloned.graph, cloned.source, p.effort.order(p.step_size()));
  p.watch.check();
  if (found.nodes.empty()) return std::nullopt;
  Candidate moved = candidate;
  moved.live_peak = facts.external_bytes + found.live_peak;
  moved.peak = -1;
  moved.number = p.candidates.size();
  moved.moved = std::move(found.nodes);
  const std::int64_t least =
      least_live(p.candidates, [](const Candidate& c) { return c.counts_for_floor() && c.rates_orders(); }).live_peak;
  if (moved.live_peak >= candidate.live_peak || moved.live_peak - least > least / kFarAboveLeast) return std::nullopt;
  return moved;
}

// The order's own nodes as they stand among the clones.
std::vector<NodeId> nodes_among(const ClonedGraph& cloned, const Order& order) {
  std::vector<char> seen(order.graph.nodes.size(), 0);
  std::vector<NodeId> nodes;
  for (NodeId source : cloned.source)
    if (!std::exchange(seen[source], 1)) nodes.push_back(source);
  return nodes;
}

// The order that came of it; null if none did, or if it has nothing better.
const Order* improve_once(const Order& order, Planning* p) {
  std::optional<Candidate> found = move_nodes(least_of(order, *p), *p);
  if (!found) return nullptr;
  p->candidates.push_back(std::move(*found));
  const Candidate& moved = p->candidates.back();
  const ClonedGraph cloned = graph_of(moved);
  // In an order of their own, forward nodes made in backward would be forward's again, in the middle of backward.
  const bool any_late = std::find(cloned.late.begin(), cloned.late.end(), 1) != cloned.late.end();
  if (p->options.split_phases && any_late) return nullptr;
  const std::vector<NodeId> nodes = nodes_among(cloned, order);
  // Where only clones were moved, the order is known, and all choices in it would be the same again.
  if (std::is_sorted(nodes.begin(), nodes.end())) return nullptr;
  const std::size_t first = p->orders.size();
  add_order(make_order("searched", reorder(order.graph, nodes), p->options, p->recorded().facts.keep_all_cost), p);
  std::vector<Order*> found_orders;
  for (std::size_t i = first; i < p->orders.size(); ++i) found_orders.push_back(p->orders[i].get());
  add_candidates(found_orders, p);
  const Order& next = *p->orders[first];
  return least_of(next, *p).live_peak < moved.live_peak ? &next : nullptr;
}

}  // namespace

// Which order leads furthest does not show before, so all are tried. Orders with parts are left out: parts cannot be made
// again. So are orders with other ways of loops: their nodes stand as in an order that is tried.
void improve_in_turn(Planning* p) {
  std::vector<const Order*> starts;
  for (const auto& order : p->orders)
    if (!order->facts.has_parts && !order->has_other_ways()) starts.push_back(order.get());
  for (const Order* order : starts)
    for (int round = 0; order && round < kMostImprovingRounds; ++round) order = improve_once(*order, p);
}

}  // namespace tapedeck
