#include <tapedeck/capture/tool/reports/graph_flops.h>

#include <tapedeck/kernels/attrs/control.h>

#include <algorithm>
#include <string_view>

namespace tapedeck::tool {

namespace {

void add(Flops* sum, const Flops& more, double times = 1) {
  sum->step += times * more.step;
  sum->per_pass += times * more.per_pass;
}

Flops flops_inside(const Graph& g) {
  Flops sum;
  for (const Node& n : g.nodes) add(&sum, tapedeck::tool::flops_of(g, n));
  return sum;
}

double declared(const Graph& g, const Node& n) {
  return n.op->cost ? std::max(0.0, n.op->cost(g.input_types(n), g.output_types(n), g.attributes(n)).flops) : 0;
}

bool is_op(const Node& n, std::string_view name) { return n.op->name == name; }

// The number of passes of a loop; -1 if it is known only in the run. The first operand of a loop_grad is the number of passes
// that the loop has made: the first result of a `while`, or a number that a node without operands gives.
std::int64_t passes_of(const Graph& g, const Node& n) {
  const auto slices = [&](std::int64_t operand) {
    return g.values[static_cast<std::size_t>(g.inputs(n)[static_cast<std::size_t>(operand)])].type.shape[0];
  };
  if (is_op(n, "scan")) {
    const auto& loop = *static_cast<const LoopAttrs*>(g.attributes(n));
    return loop.scanned > 0 ? slices(loop.carried) : loop.trips;
  }
  if (is_op(n, "loop_grad")) {
    const NodeId counter = g.values[static_cast<std::size_t>(g.inputs(n)[0])].node;
    if (counter == kNone || g.nodes[static_cast<std::size_t>(counter)].n_inputs > 0) return -1;
    const auto& loop = *static_cast<const LoopGradAttrs*>(g.attributes(n));
    return loop.scanned > 0 ? slices(loop.carried + 1) : loop.trips;
  }
  return -1;
}

Flops dearer(const Flops& a, const Flops& b) { return a.step + a.per_pass < b.step + b.per_pass ? b : a; }

}  // namespace

Flops flops_of(const Graph& g, const Node& n) {
  Flops sum{declared(g, n), 0};
  const std::span<const Region> regions = g.regions_of(n);
  if (regions.empty()) return sum;
  Flops each, most;
  for (const Region& region : regions) {
    const Flops flops = flops_inside(*region);
    add(&each, flops);
    most = dearer(most, flops);
  }
  const std::int64_t passes = passes_of(g, n);
  if (is_op(n, "cond"))
    add(&sum, most);
  else if (passes >= 0)
    add(&sum, each, static_cast<double>(passes));
  else if (is_op(n, "while") || is_op(n, "loop_grad"))
    sum.per_pass += each.step + each.per_pass;
  else
    add(&sum, flops_inside(*regions[0]));
  return sum;
}

}  // namespace tapedeck::tool
