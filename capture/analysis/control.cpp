#include <tapedeck/capture/analysis/control.h>

#include <tapedeck/capture/analysis/cost.h>
#include <tapedeck/capture/planner.h>
#include <tapedeck/engine/control_schedule.h>
#include <tapedeck/engine/error.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/engine/ops/dynamic.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

namespace tapedeck {

std::shared_ptr<const Plan> plan_of(const Region& region) {
  struct Known {
    std::weak_ptr<const Graph> region;
    std::shared_ptr<const Plan> plan;
  };
  static std::mutex mutex;
  static std::map<const Graph*, Known> known;
  {
    std::lock_guard lock(mutex);
    const auto it = known.find(region.get());
    if (it != known.end() && it->second.region.lock() == region) return it->second.plan;
  }
  PlanOptions options;
  options.strategy = Strategy::none;
  options.find_floor = false;
  auto plan = std::make_shared<const Plan>(make_plan(*region, options));
  std::lock_guard lock(mutex);
  for (auto it = known.begin(); it != known.end();) it = it->second.region.expired() ? known.erase(it) : std::next(it);
  known[region.get()] = {region, plan};
  return plan;
}

std::int64_t frame_bytes(const Plan& plan) {
  std::int64_t bytes = framed(plan.arena_bytes);
  for (const Type& t : plan.output_slots) bytes += framed(t.bytes());
  for (ValueId v : plan.graph.outputs)
    if (plan.values[static_cast<std::size_t>(v)].where == Where::input) bytes += framed(plan.graph.values[static_cast<std::size_t>(v)].type.bytes());
  return bytes;
}

LoopTape loop_tape(const Graph& g, const Node& node) {
  LoopTape tape;
  if (node.op != &ops::loop_grad) return tape;
  const auto& a = *static_cast<const LoopGradAttrs*>(g.attributes(node));
  const auto operands = g.inputs(node);
  for (std::int64_t j = 0; j < a.carried; ++j) tape.entry_bytes += framed(g.values[static_cast<std::size_t>(operands[static_cast<std::size_t>(j + 1)])].type.bytes());
  std::int64_t trips = a.trips;
  if (a.scanned > 0) trips = g.values[static_cast<std::size_t>(operands[static_cast<std::size_t>(a.carried + 1)])].type.shape[0];
  tape.entries = trips < 0 ? -1 : tape_entries(trips, a.checkpoint);
  if (tape.entries > 0 && tape.entry_bytes > (std::int64_t{1} << 50) / tape.entries)
    throw InvalidGraphError(fmt::format("the tape of `{}` would hold more than 2^50 bytes", g.node_text(static_cast<NodeId>(&node - g.nodes.data()))));
  return tape;
}

std::int64_t control_workspace(const Graph& g, const Node& node) {
  if (node.op == &ops::dynamic) return 0;   // runs on memory of its own
  std::int64_t frame = 0;
  for (const Region& region : g.regions_of(node)) frame = std::max(frame, frame_bytes(*plan_of(region)));
  return kFrameAlignment + frame + loop_tape(g, node).bytes();
}

namespace {

double region_cost(const Graph& region, const Calibration* calibration) {
  const std::vector<double> costs = node_costs(region, calibration);
  return std::accumulate(costs.begin(), costs.end(), 0.0);
}

}  // namespace

double control_cost_us(const Graph& g, const Node& node, const Calibration* calibration) {
  const auto regions = g.regions_of(node);
  double all = 0, most = 0;
  for (const Region& region : regions) {
    const double cost = region_cost(*region, calibration);
    all += cost;
    most = std::max(most, cost);
  }
  if (node.op != &ops::while_loop && node.op != &ops::scan && node.op != &ops::loop_grad) return most;
  std::int64_t trips = -1, carried = 0, scanned = 0;
  const bool grad = node.op == &ops::loop_grad;
  if (grad) {
    const auto& a = *static_cast<const LoopGradAttrs*>(g.attributes(node));
    trips = a.trips, carried = a.carried + 1, scanned = a.scanned;
  } else {
    const auto& a = *static_cast<const LoopAttrs*>(g.attributes(node));
    trips = a.trips, carried = a.carried, scanned = a.scanned;
  }
  if (scanned > 0) trips = g.values[static_cast<std::size_t>(g.inputs(node)[static_cast<std::size_t>(carried)])].type.shape[0];
  return all * static_cast<double>(trips < 0 ? kAssumedTrips : trips);
}

}  // namespace tapedeck
