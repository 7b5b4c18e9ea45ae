// The regions of several nodes are chosen together, by a limit on the bytes of one frame: no two frames are alive at once.
#include <tapedeck/capture/planner/lean_regions.h>

#include <tapedeck/capture/cost/control_cost.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/region_plans.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kMostLeanLimits = 6;  // settings of the regions that are tried in one order
constexpr std::int64_t kLeastOfPeak = 16;   // a frame counts if it is at least this part of the bytes alive
constexpr std::size_t kMostLeanNodes = 16;  // beyond, the nodes with the largest workspaces
using Plans = std::vector<std::shared_ptr<const Plan>>;

struct RegionWays {
  std::int32_t region = kNone;  // its place in Graph::regions
  Plans plans;                  // everything kept first, then descending in bytes
};

struct LeanNode {
  NodeId node = kNone;
  std::vector<RegionWays> regions;
};

std::vector<NodeId> nodes_with_large_frames(const Order& order) {
  std::vector<NodeId> nodes;
  const std::int64_t in_arena = order.live_peak - order.facts.external_bytes;
  for (NodeId n = 0; n < order.graph.node_count(); ++n)
    if (runs_regions_by_plan(order.graph.nodes[n]) && order.facts.workspace[n] >= in_arena / kLeastOfPeak) nodes.push_back(n);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](NodeId a, NodeId b) { return order.facts.workspace[a] > order.facts.workspace[b]; });
  if (nodes.size() > kMostLeanNodes) nodes.resize(kMostLeanNodes);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<LeanNode> lean_nodes(const Order& order, const Planning& p) {
  std::vector<LeanNode> found;
  for (const NodeId n : nodes_with_large_frames(order)) {
    const Node& node = order.graph.nodes[n];
    LeanNode lean{n, {}};
    bool any = false;
    for (std::int32_t r = node.first_region; r < node.first_region + node.n_regions; ++r) {
      p.watch.check();
      RegionWays ways{r, {plan_region(order.graph.regions[r])}};
      for (auto& plan : plans_in_fewer_bytes(order.graph.regions[r])) ways.plans.push_back(std::move(plan));
      any = any || ways.plans.size() > 1;
      lean.regions.push_back(std::move(ways));
    }
    if (any) found.push_back(std::move(lean));
  }
  return found;
}

// Limits on the bytes of a frame, descending; the smallest frames are always among them.
std::vector<std::int64_t> lean_limits(const std::vector<LeanNode>& nodes) {
  std::set<std::int64_t, std::greater<>> sizes;
  for (const LeanNode& lean : nodes)
    for (const RegionWays& ways : lean.regions)
      for (std::size_t i = 1; i < ways.plans.size(); ++i) sizes.insert(frame_bytes(*ways.plans[i]));
  const std::vector<std::int64_t> all(sizes.begin(), sizes.end());
  if (all.size() <= kMostLeanLimits) return all;
  std::vector<std::int64_t> limits;
  for (std::size_t i = 1; i <= kMostLeanLimits; ++i) limits.push_back(all[i * all.size() / kMostLeanLimits - 1]);
  return limits;
}

const std::shared_ptr<const Plan>& plan_below(const RegionWays& ways, std::int64_t limit) {
  for (const auto& plan : ways.plans)
    if (frame_bytes(*plan) <= limit) return plan;
  return ways.plans.back();
}

// The plans that the node's regions take; empty if they are those that keep everything.
Plans lean_plans(const LeanNode& lean, std::int64_t limit) {
  Plans plans;
  bool leaner = false;
  for (const RegionWays& ways : lean.regions) {
    plans.push_back(plan_below(ways, limit));
    leaner = leaner || plans.back() != ways.plans[0];
  }
  return leaner ? plans : Plans{};
}

void use(const Plans& plans, const LeanNode& lean, Graph* graph) {
  for (std::size_t i = 0; i < plans.size(); ++i) graph->regions[lean.regions[i].region] = Region(plans[i], &plans[i]->graph);
}

Plans kept_plans(const LeanNode& lean) {
  Plans plans;
  for (const RegionWays& ways : lean.regions) plans.push_back(ways.plans[0]);
  return plans;
}

Decision lean_decision(const Order& base, const Order& order, const LeanNode& lean, const Plans& plans, double extra_us) {
  const Node& node = base.graph.nodes[lean.node];
  std::int32_t again = 0;
  for (const auto& plan : plans) again += plan->recomputed_nodes;
  Decision d;
  d.value = node.n_outputs > 0 ? base.graph.value_name(node.first_output) : fmt::format("node {}", lean.node);
  d.bytes = base.facts.workspace[lean.node] - order.facts.workspace[lean.node];
  d.cost_us = extra_us;
  d.live_peak_bytes = order.live_peak;
  d.reason = fmt::format("a run inside of this {} takes {} bytes of workspace, not {}: {}", node.op->name,
                         order.facts.workspace[lean.node], base.facts.workspace[lean.node],
                         again > 0 ? fmt::format("it computes {} node{} again", again, again == 1 ? "" : "s")
                                   : "loops in it keep less for their backward");
  return d;
}

// The order with each region in its cheapest plan below the limit. A measured cost is that of the regions as recorded, so the
// model only says by how much it grows.
std::unique_ptr<Order> with_limit(const Order& base, const std::vector<LeanNode>& nodes, std::int64_t limit,
                                  const Planning& p) {
  Graph graph = base.graph, kept = base.graph;
  for (const LeanNode& lean : nodes) {
    use(lean_plans(lean, limit), lean, &graph);
    use(kept_plans(lean), lean, &kept);
  }
  auto order = make_order(base.name, std::move(graph), p.options);
  order->nodes = base.nodes;
  order->loops = base.loops;
  order->recorded_cost = base.has_other_ways() ? base.recorded_cost : base.facts.keep_all_cost;
  order->facts.cost = base.facts.cost;
  order->facts.kernel_cost = base.facts.kernel_cost;
  order->facts.keep_all_cost = base.facts.keep_all_cost;
  for (const LeanNode& lean : nodes) {
    const Plans plans = lean_plans(lean, limit);
    if (plans.empty()) continue;
    const double before = control_cost_us(kept, kept.nodes[lean.node]);
    const double after = control_cost_us(order->graph, order->graph.nodes[lean.node]);
    const double extra = before > 0 ? base.facts.cost[lean.node] * std::max(after / before - 1, 0.0) : 0;
    order->facts.cost[lean.node] += extra;
    order->facts.kernel_cost[lean.node] += extra;
    order->facts.keep_all_cost += extra;
    order->loops.push_back(lean_decision(base, *order, lean, plans, extra));
  }
  return order;
}

}  // namespace

void add_lean_regions(Planning* p) {
  for (const Order* base : orders_to_vary(*p)) {
    const std::vector<LeanNode> nodes = lean_nodes(*base, *p);
    for (const std::int64_t limit : lean_limits(nodes)) {
      p->watch.check();
      add_order(with_limit(*base, nodes, limit, *p), p);
    }
  }
}

}  // namespace tapedeck
