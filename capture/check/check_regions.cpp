// Invariant (5): the plans of regions. A region's plan is judged as a plan, and beside that:
//   - its graph is the region. The executor runs the plan's graph, the graph around it shows the region; they must be one
//   program;
//   - it runs inside the workspace of one node, so its arena is one block, aligned no more strictly than a frame is.
// check_placements() asks then whether the frames fit the workspace.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/check/checks.h>
#include <tapedeck/capture/plan/region_frames.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostArena = std::int64_t{1} << 50;  // of a region; larger sums could overflow

// ---- is it the same program? ----

bool same_values(const Graph& a, const Graph& b) {
  return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [](const Value& x, const Value& y) { return x.type == y.type && x.node == y.node; });
}

bool same_graph(const Graph& a, const Graph& b);

// REQUIRES: both graphs verify, and their values are the same. So the nodes have the same results, and the same number of
// regions if they have the same op.
bool same_node(const Graph& a, const Node& x, const Graph& b, const Node& y) {
  const auto p = a.inputs(x), q = b.inputs(y), after = a.after(x), after_too = b.after(y);
  if (x.op != y.op) return false;
  if (!std::equal(p.begin(), p.end(), q.begin(), q.end()) ||
      !std::equal(after.begin(), after.end(), after_too.begin(), after_too.end()))
    return false;
  for (std::int32_t r = 0; r < x.n_regions; ++r)
    if (!same_graph(*a.regions_of(x)[r], *b.regions_of(y)[r])) return false;
  return same_attributes(a, x, b, y);
}

// Value by value and node by node: the same numbers, types, ops, attributes and constants, in the same order. REQUIRES: both
// verify.
bool same_graph(const Graph& a, const Graph& b) {
  if (&a == &b) return true;
  if (a.n_inputs != b.n_inputs || a.n_state != b.n_state || a.nodes.size() != b.nodes.size() || !same_values(a, b) ||
      a.outputs != b.outputs)
    return false;
  for (std::size_t n = 0; n < a.nodes.size(); ++n)
    if (!same_node(a, a.nodes[n], b, b.nodes[n])) return false;
  return true;
}

bool verifies(const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool is_plan_of(const Plan& plan, const Graph& region) {
  return &plan.graph == &region || (verifies(plan.graph) && same_graph(plan.graph, region));
}

// ---- the plans ----

class RegionChecker {
 public:
  RegionChecker(const Plan& plan, Violations* out) : plan_(plan), g_(plan.graph), out_(out) {}

  void check() {
    for (const Node& node : g_.nodes)
      for (std::int32_t r = 0; r < node.n_regions && out_->size() < kMostViolations; ++r) check_region(node, r);
  }

 private:
  void report(const Node& node, std::int32_t r, const std::string& what) {
    out_->push_back(fmt::format("region {} of `{}` {}", r, g_.node_text(static_cast<NodeId>(&node - g_.nodes.data())), what));
  }

  void check_region(const Node& node, std::int32_t r) {
    const Plan* const plan = plan_.region_plans_of(node)[r].get();
    if (!runs_regions_by_plan(node)) {
      if (plan) report(node, r, "has a plan, and runs without one");
      return;
    }
    if (!plan) return report(node, r, "has no plan");
    if (!is_plan_of(*plan, *g_.regions_of(node)[r])) return report(node, r, "has the plan of another program");
    if (!plan->feasible) return report(node, r, "has a plan that does not fit its budget");
    if (plan->chunk_bytes != 0) return report(node, r, "has an arena in chunks; a frame is one block");
    if (plan->alignment > kFrameAlignment)
      return report(node, r, fmt::format("is aligned to {} bytes; a frame is aligned to {}", plan->alignment, kFrameAlignment));
    if (plan->arena_bytes > kMostArena)
      return report(node, r, fmt::format("has an arena of {} bytes, more than 2^50", plan->arena_bytes));
    for (const std::string& violation : violations_of(*plan))
      if (out_->size() < kMostViolations) report(node, r, "has a bad plan: " + violation);
  }

  // Clones of a node have one plan in common.
  const Violations& violations_of(const Plan& plan) {
    const auto [it, fresh] = judged_.try_emplace(&plan);
    if (fresh) it->second = check_plan(plan);
    return it->second;
  }

  const Plan& plan_;
  const Graph& g_;
  Violations* out_;
  std::map<const Plan*, Violations> judged_;
};

}  // namespace

void check_regions(const Plan& plan, Violations* out) { RegionChecker(plan, out).check(); }

}  // namespace tapedeck
