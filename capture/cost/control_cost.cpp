#include <tapedeck/capture/cost/control_cost.h>

#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/ops/control.h>

#include <algorithm>
#include <numeric>

namespace tapedeck {

namespace {

double region_cost(const Graph& region, const Calibration* calibration) {
  const std::vector<double> costs = node_costs(region, calibration);
  return std::accumulate(costs.begin(), costs.end(), 0.0);
}

double bytes_of(const std::vector<Type>& types) {
  double bytes = 0;
  for (const Type& t : types) bytes += static_cast<double>(t.bytes());
  return bytes;
}

// The nodes inside move their operands and results through the first-level cache. `share` of these bytes are operands and
// results of the fused node, and go through memory.
double fused_cost(const Graph& g, const Node& node, const Calibration* calibration) {
  // The time of a node in the cache to its time in memory. By fusion_bench it is 0.53 for eight cheap ops on 16M elements, and
  // 0.23 for the backward of relu6.
  constexpr double kInCache = 0.4;
  const Graph& region = *g.regions_of(node)[0];
  double moved = 0;
  for (const Node& inner : region.nodes) moved += bytes_of(region.input_types(inner)) + bytes_of(region.output_types(inner));
  const double crossing = bytes_of(g.input_types(node)) + bytes_of(g.output_types(node));
  const double share = moved > 0 ? std::min(1.0, crossing / moved) : 1;
  return region_cost(region, calibration) * (share + (1 - share) * kInCache);
}

}  // namespace

double control_cost_us(const Graph& g, const Node& node, const Calibration* calibration) {
  if (node.op->is(kTiled)) return fused_cost(g, node, calibration);
  const auto regions = g.regions_of(node);
  double all = 0, most = 0;
  for (const Region& region : regions) {
    const double cost = region_cost(*region, calibration);
    all += cost;
    most = std::max(most, cost);
  }
  if (node.op != &ops::while_loop && node.op != &ops::scan && node.op != &ops::loop_grad) return most;
  std::int64_t trips = -1, carried = 0, scanned = 0, checkpoint = 0;
  const bool grad = node.op == &ops::loop_grad;
  if (grad) {
    const auto& a = *static_cast<const LoopGradAttrs*>(g.attributes(node));
    trips = a.trips, carried = a.carried + 1, scanned = a.scanned, checkpoint = a.checkpoint;
  } else {
    const auto& a = *static_cast<const LoopAttrs*>(g.attributes(node));
    trips = a.trips, carried = a.carried, scanned = a.scanned;
  }
  if (scanned > 0) trips = g.values[g.inputs(node)[carried]].type.shape[0];
  if (trips < 0) trips = kAssumedTrips;
  const double again = grad ? passes_run_again(trips, checkpoint) * region_cost(*regions[0], calibration) : 0;
  return all * static_cast<double>(trips) + again;
}

// The first operand of a loop_grad is the number of passes that the loop has made: the first result of a `while`, or a number
// that a node without operands gives.
std::int64_t known_passes(const Graph& g, const Node& n) {
  const auto slices = [&](std::int64_t operand) {
    return g.values[static_cast<std::size_t>(g.inputs(n)[static_cast<std::size_t>(operand)])].type.shape[0];
  };
  if (n.op == &ops::scan) {
    const auto& loop = *static_cast<const LoopAttrs*>(g.attributes(n));
    return loop.scanned > 0 ? slices(loop.carried) : loop.trips;
  }
  if (n.op == &ops::loop_grad) {
    const NodeId counter = g.values[static_cast<std::size_t>(g.inputs(n)[0])].node;
    if (counter == kNone || g.nodes[static_cast<std::size_t>(counter)].n_inputs > 0) return -1;
    const auto& loop = *static_cast<const LoopGradAttrs*>(g.attributes(n));
    return loop.scanned > 0 ? slices(loop.carried + 1) : loop.trips;
  }
  return -1;
}

}  // namespace tapedeck
