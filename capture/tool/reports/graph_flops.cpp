#include <tapedeck/capture/tool/reports/graph_flops.h>

#include <tapedeck/capture/cost/control_cost.h>

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
  const std::int64_t passes = known_passes(g, n);
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
