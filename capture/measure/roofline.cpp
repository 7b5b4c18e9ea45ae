// The bound of a node is computed from its counts; rows and sums are computed from bounds and measured times.
//     matmul 64x64x64    524288 flops at 100 GF/s    5.2 us  <- binds
//                        49152 bytes, L2 at 60 GB/s  0.8 us
#include <tapedeck/capture/measure/roofline.h>

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/capture/cost/control_cost.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/kernels/half.h>

#include <algorithm>
#include <map>

namespace tapedeck {

namespace {

double bytes_of(const Type& type) { return static_cast<double>(type.bytes()); }

// ---- counts of a node without regions ----

class Counter {
 public:
  Counter(const Graph& graph, const Node& node, const Plan* plan) : graph_(graph), node_(node), plan_(plan) {}

  // The bytes that the op counts, without those that are certainly not moved. An op that counts in a way of its own is
  // believed.
  double moved(double counted) const {
    if (node_.op->is(kView) && node_.n_outputs == 1) return copied_view();
    double all = 0;
    for (const ValueId v : graph_.inputs(node_)) all += bytes_of(type(v));
    for (const Value& result : graph_.output_values(node_)) all += bytes_of(result.type);
    return counted == all ? std::max(0.0, all - spared()) : std::max(0.0, counted);
  }

 private:
  const Type& type(ValueId v) const { return graph_.values[static_cast<std::size_t>(v)].type; }
  const Placement* placement(ValueId v) const { return plan_ ? &plan_->values[static_cast<std::size_t>(v)] : nullptr; }

  // A view that is made by a kernel copies the bytes that it looks at.
  double copied_view() const {
    const double result = bytes_of(type(node_.first_output));
    return result + std::min(result, bytes_of(type(graph_.inputs(node_)[0])));
  }

  double spared() const {
    const std::span<const ValueId> operands = graph_.inputs(node_);
    double sum = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool again = std::find(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(i), operands[i]) !=
                         operands.begin() + static_cast<std::ptrdiff_t>(i);
      if (again)
        sum += bytes_of(type(operands[i]));
      else if (lies_in_place(operands[i]))
        sum += 2 * bytes_of(type(operands[i]));
      else
        sum += bytes_of(type(operands[i])) - looked_at(operands[i]);
    }
    return sum;
  }

  bool lies_in_place(ValueId operand) const {
    const Placement* p = placement(operand);
    return p && node_.op->part && p->reason == Reason::part && p->other == node_.first_output;
  }

  // A broadcast view has more elements than the value that it looks at.
  double looked_at(ValueId v) const {
    double least = bytes_of(type(v));
    for (const Placement* p = placement(v); p && p->reason == Reason::alias && p->other != kNone; p = placement(v)) {
      v = p->other;
      least = std::min(least, bytes_of(type(v)));
    }
    return least;
  }

  const Graph& graph_;
  const Node& node_;
  const Plan* plan_;
};

bool has_half(const Graph& graph, const Node& node) {
  const std::vector<Type> types = graph.input_types(node);
  return std::any_of(types.begin(), types.end(), [](const Type& t) { return kernels::is_half(t.dtype); });
}

NodeBound simple_bound(const Graph& graph, const Node& node, const ThreadPeaks& peaks, const Plan* plan) {
  NodeBound bound;
  if (node.op->is(kZeroCost) || graph.literal(node)) return bound;
  const Cost cost = counted_cost(*node.op, graph.input_types(node), graph.output_types(node), graph.attributes(node));
  if (cost.us >= 0 || node.op->is(kHostCall)) {
    bound.by = BoundBy::unknown;
    return bound;
  }
  bound.flops = std::max(0.0, cost.flops);
  bound.bytes = Counter(graph, node, plan).moved(cost.bytes);
  bound.level = level_of(peaks, bound.bytes);
  const double by_flops = bound.flops / (has_half(graph, node) ? peaks.half_gflop_per_s : peaks.gflop_per_s) / 1e3;
  const double by_bytes = bound.bytes / peaks.levels[bound.level].gb_per_s / 1e3;
  bound.us = std::max(by_flops, by_bytes);
  if (bound.us > 0) bound.by = by_flops > by_bytes ? BoundBy::flops : BoundBy::bytes;
  return bound;
}

// ---- regions ----

void add(NodeBound* sum, const NodeBound& more) {
  sum->us += more.us;
  sum->flops += more.flops;
  sum->bytes += more.bytes;
}

NodeBound no_bound() {
  NodeBound none;
  none.by = BoundBy::unknown;
  return none;
}

// A view in a region has no kernel call. An exception is a view that the plan of the region does not lay on other bytes.
bool is_free_view(const Node& node, const Plan* plan) {
  if (!node.op->is(kView)) return false;
  return !plan || plan->values[static_cast<std::size_t>(node.first_output)].reason == Reason::alias;
}

// One pass of a region.
NodeBound pass_bound(const Graph& region, const ThreadPeaks& peaks, const Plan* plan) {
  NodeBound sum;
  sum.by = BoundBy::regions;
  for (NodeId n = 0; n < region.node_count(); ++n) {
    if (is_free_view(region.nodes[static_cast<std::size_t>(n)], plan)) continue;
    const NodeBound bound = bound_of(region, n, peaks, plan);
    if (bound.by == BoundBy::unknown) return bound;
    add(&sum, bound);
  }
  return sum;
}

std::vector<NodeBound> pass_bounds(const Graph& graph, const Node& node, const ThreadPeaks& peaks, const Plan* plan) {
  std::vector<NodeBound> bounds;
  const std::span<const Region> regions = graph.regions_of(node);
  const bool planned = plan && plan->region_plans.size() == graph.regions.size();
  for (std::size_t r = 0; r < regions.size(); ++r)
    bounds.push_back(pass_bound(*regions[r], peaks, planned ? plan->region_plans_of(node)[r].get() : nullptr));
  return bounds;
}

NodeBound region_bound(const Graph& graph, const Node& node, const ThreadPeaks& peaks, const Plan* plan) {
  const bool branch = node.op == &ops::cond;
  const std::int64_t passes = branch ? 1 : known_passes(graph, node);
  if (passes < 0) return no_bound();
  const std::vector<NodeBound> bounds = pass_bounds(graph, node, peaks, plan);
  NodeBound sum;
  sum.by = BoundBy::regions;
  for (const NodeBound& bound : bounds) {
    if (bound.by == BoundBy::unknown) return bound;
    add(&sum, bound);
  }
  if (branch)
    return *std::min_element(bounds.begin(), bounds.end(), [](const NodeBound& a, const NodeBound& b) { return a.us < b.us; });
  const auto times = static_cast<double>(passes);
  sum.us *= times, sum.flops *= times, sum.bytes *= times;
  return sum;
}

// ---- rows ----

RooflineRow row_of(const Plan& plan, NodeId n, double us, const ThreadPeaks& peaks) {
  const Node& node = plan.graph.nodes[static_cast<std::size_t>(n)];
  RooflineRow row;
  row.node = n;
  row.op = node.op->name;
  if (node.n_outputs > 0) row.name = plan.graph.value_name(node.first_output);
  row.module = node.origin.path.str();
  row.site = node.origin.site.str();
  row.us = us;
  row.bound = bound_of(plan.graph, n, peaks, &plan);
  row.lost_us = us - row.bound.us;
  if (us > 0) {
    row.gflop_per_s = row.bound.flops / us / 1e3;
    row.gb_per_s = row.bound.bytes / us / 1e3;
    row.percent = 100 * row.bound.us / us;
  }
  return row;
}

template <class Rows>
void worst_first(Rows* rows) {
  std::stable_sort(rows->begin(), rows->end(), [](const auto& a, const auto& b) { return a.lost_us > b.lost_us; });
}

std::vector<RooflineOp> totals_by_op(const std::vector<RooflineRow>& rows) {
  std::map<std::string, RooflineOp> totals;
  for (const RooflineRow& row : rows) {
    RooflineOp& total = totals[row.op];
    total.op = row.op;
    ++total.nodes;
    total.us += row.us;
    total.bound_us += std::min(row.bound.us, row.us);
    total.lost_us += std::max(row.lost_us, 0.0);
    total.share += row.share;
  }
  std::vector<RooflineOp> ops;
  for (const auto& entry : totals) ops.push_back(entry.second);
  worst_first(&ops);
  return ops;
}

}  // namespace

NodeBound bound_of(const Graph& graph, NodeId n, const ThreadPeaks& peaks, const Plan* plan) {
  const Node& node = graph.nodes[static_cast<std::size_t>(n)];
  const bool is_control = node.n_regions > 0 && !node.op->is(kTiled);
  return is_control ? region_bound(graph, node, peaks, plan) : simple_bound(graph, node, peaks, plan);
}

Roofline make_roofline(const Plan& plan, std::span<const double> node_us, const StepTimes& step, const ThreadPeaks& peaks) {
  Roofline roofline;
  roofline.peaks = peaks;
  roofline.step_us = step.median_us;
  roofline.fastest_us = step.fastest_us;
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
    const double us = node_us[static_cast<std::size_t>(n)];
    if (!(us >= 0)) continue;
    const RooflineRow& row = roofline.rows.emplace_back(row_of(plan, n, us, peaks));
    roofline.kernels_us += us;
    roofline.bound_us += std::min(row.bound.us, us);
    roofline.below_bound += row.bound.us > us;
    if (row.bound.by != BoundBy::unknown) continue;
    ++roofline.unbounded;
    roofline.unbounded_us += us;
  }
  for (RooflineRow& row : roofline.rows) row.share = roofline.kernels_us > 0 ? row.us / roofline.kernels_us : 0;
  worst_first(&roofline.rows);
  roofline.ops = totals_by_op(roofline.rows);
  if (roofline.bound_us > 0) {
    roofline.ratio = step.median_us / roofline.bound_us;
    roofline.fastest_ratio = step.fastest_us / roofline.bound_us;
  }
  return roofline;
}

}  // namespace tapedeck
