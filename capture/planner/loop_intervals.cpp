// For each loop_grad node the ways to keep fewer carried values are listed, from the cheapest to the smallest tape. The ways of
// several loops are combined by a limit on the bytes of a tape: each loop takes its cheapest way below the limit. The tapes of
// two loops are never alive at once, so the peak asks only for the largest one.
#include <tapedeck/capture/planner/loop_intervals.h>

#include <tapedeck/capture/cost/control_cost.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/kernels/checked_math.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kMostLimits = 5;  // settings of the loops that are tried in one order

struct Way {
  std::int64_t checkpoint = 0;
  std::int64_t bytes = 0;  // of the tape
  double again = 0;        // passes run again
};

struct Loop {
  NodeId node = kNone;
  std::int64_t trips = 0;
  std::vector<Way> ways;  // the recorded one first; then ascending in `again` and descending in bytes
};

const LoopGradAttrs& attributes_of(const Graph& g, NodeId n) {
  return *static_cast<const LoopGradAttrs*>(g.attributes(g.nodes[n]));
}

bool has_effect(const Graph& g, const Node& node) {
  std::vector<const Graph*> waiting;
  for (const Region& region : g.regions_of(node)) waiting.push_back(region.get());
  while (!waiting.empty()) {
    const Graph& body = *waiting.back();
    waiting.pop_back();
    for (const Node& inner : body.nodes) {
      if (inner.op->is(kEffect)) return true;
      for (const Region& region : body.regions_of(inner)) waiting.push_back(region.get());
    }
  }
  return false;
}

std::vector<std::int64_t> intervals_for(std::int64_t trips) {
  std::vector<std::int64_t> all{kCheckpointSqrt};
  for (std::int64_t n = 2; n < trips && n <= trips / 2; n *= 2) all.push_back(n);
  if (trips <= kMostCountedTrips) all.push_back(kCheckpointLog);
  return all;
}

// Only ways with a smaller tape than the recorded one, that are no cheaper: the recorded interval is the user's choice for
// plans that have the bytes.
std::vector<Way> ways_of(std::int64_t trips, std::int64_t recorded, std::int64_t entry_bytes) {
  const auto way = [&](std::int64_t checkpoint) {
    return Way{checkpoint, limited_product({entry_bytes, tape_entries(trips, checkpoint)}),
               passes_run_again(trips, checkpoint)};
  };
  const Way first = way(recorded);
  std::vector<Way> others;
  if (trips <= 2) return {first};
  for (const std::int64_t checkpoint : intervals_for(trips))
    if (const Way w = way(checkpoint); w.bytes < first.bytes && w.again >= first.again) others.push_back(w);
  std::stable_sort(others.begin(), others.end(),
                   [](const Way& a, const Way& b) { return a.again != b.again ? a.again < b.again : a.bytes < b.bytes; });
  std::vector<Way> ways{first};
  for (const Way& w : others)
    if (w.bytes < ways.back().bytes) ways.push_back(w);
  return ways;
}

std::int64_t passes_of(const Graph& g, NodeId n) { return most_passes(attributes_of(g, n), g.input_types(g.nodes[n])); }

// REQUIRES: the passes are bounded.
std::vector<Way> ways_in(const Graph& g, NodeId n) {
  return ways_of(passes_of(g, n), attributes_of(g, n).checkpoint, loop_tape(g, g.nodes[n]).entry_bytes);
}

std::vector<Loop> loops_of(const Graph& g) {
  std::vector<Loop> loops;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    if (g.nodes[n].op != &ops::loop_grad || !why_interval_stays(g, n).empty()) continue;
    loops.push_back({n, passes_of(g, n), ways_in(g, n)});
  }
  return loops;
}

// Limits on the bytes of a tape, descending; the smallest tapes are always among them.
std::vector<std::int64_t> limits_for(const std::vector<Loop>& loops) {
  std::set<std::int64_t, std::greater<>> sizes;
  for (const Loop& loop : loops)
    for (std::size_t w = 1; w < loop.ways.size(); ++w) sizes.insert(loop.ways[w].bytes);
  const std::vector<std::int64_t> all(sizes.begin(), sizes.end());
  if (all.size() <= kMostLimits) return all;
  std::vector<std::int64_t> limits;
  for (std::size_t i = 1; i <= kMostLimits; ++i) limits.push_back(all[i * all.size() / kMostLimits - 1]);
  return limits;
}

const Way& way_below(const Loop& loop, std::int64_t limit) {
  for (const Way& w : loop.ways)
    if (w.bytes <= limit) return w;
  return loop.ways.back();
}

std::string words_for(std::int64_t checkpoint) {
  if (checkpoint == kCheckpointSqrt) return "of about the square root of its passes";
  if (checkpoint == kCheckpointLog) return "of about the logarithm of its passes";
  return checkpoint <= 1 ? "of every pass" : fmt::format("of one pass in {}", checkpoint);
}

Decision decision_for(const Graph& g, const Loop& loop, const Way& way, double extra_us) {
  const Node& node = g.nodes[loop.node];
  Decision d;
  d.value = node.n_outputs > 0 ? g.value_name(node.first_output) : fmt::format("node {}", loop.node);
  d.bytes = loop.ways[0].bytes - way.bytes;
  d.cost_us = extra_us;
  d.reason = fmt::format("the backward of this loop keeps the carried values {}, not {}: of {} passes it runs {:.0f} again",
                         words_for(way.checkpoint), words_for(loop.ways[0].checkpoint), loop.trips, way.again);
  return d;
}

// REQUIRES: the graph owns its attributes alone, which each node has for itself.
void set_checkpoint(Graph* g, NodeId n, std::int64_t checkpoint) {
  const_cast<LoopGradAttrs&>(attributes_of(*g, n)).checkpoint = checkpoint;
}

// The order with each loop in its cheapest way below the limit.
std::unique_ptr<Order> with_limit(const Order& base, const std::vector<Loop>& loops, std::int64_t limit, const Planning& p) {
  Graph graph = base.graph;
  for (const Loop& loop : loops) set_checkpoint(&graph, loop.node, way_below(loop, limit).checkpoint);
  auto order = make_order(base.name, std::move(graph), p.options);
  order->nodes = base.nodes;
  order->recorded_cost = order->facts.keep_all_cost = base.facts.keep_all_cost;
  for (const Loop& loop : loops) {
    const Way& way = way_below(loop, limit);
    if (way.checkpoint == loop.ways[0].checkpoint) continue;
    // A measured cost is that of the recorded interval, so the model only says by how much it grows.
    const double before = control_cost_us(base.graph, base.graph.nodes[loop.node]);
    const double after = control_cost_us(order->graph, order->graph.nodes[loop.node]);
    const double cost = base.facts.cost[loop.node];
    const double extra = before > 0 ? cost * std::max(after / before - 1, 0.0) : 0;
    order->facts.cost[loop.node] = cost + extra;
    order->facts.kernel_cost[loop.node] = cost + extra;
    order->facts.keep_all_cost += extra;
    order->loops.push_back(decision_for(base.graph, loop, way, extra));
  }
  for (Decision& d : order->loops) d.live_peak_bytes = order->live_peak;
  return order;
}

std::vector<const Order*> orders_to_vary(const Planning& p) {
  const Order* least = &p.recorded();
  for (const auto& order : p.orders)
    if (!order->facts.has_parts && order->live_peak < least->live_peak) least = order.get();
  if (least == &p.recorded()) return {least};
  return {&p.recorded(), least};
}

}  // namespace

std::string why_interval_stays(const Graph& g, NodeId n) {
  const Node& node = g.nodes[n];
  if (node.op != &ops::loop_grad) return "";
  if (has_effect(g, node)) return "keeps its recorded interval: its body has an effect outside of the graph";
  if (passes_of(g, n) < 0) return "keeps its recorded interval: nothing bounds the number of its passes";
  return ways_in(g, n).size() > 1 ? "" : "keeps its recorded interval: no other one has a smaller tape";
}

void add_loop_intervals(Planning* p) {
  for (const Order* base : orders_to_vary(*p)) {
    const std::vector<Loop> loops = loops_of(base->graph);
    for (const std::int64_t limit : limits_for(loops)) {
      p->watch.check();
      add_order(with_limit(*base, loops, limit, *p), p);
    }
  }
}

}  // namespace tapedeck
