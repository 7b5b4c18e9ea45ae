#include <tapedeck/capture/planner/finish_plan.h>

#include <tapedeck/capture/plan/placement_reasons.h>
#include <tapedeck/capture/planner/region_plans.h>
#include <tapedeck/capture/planner/segments/arrange_for_threads.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

void note_bytes(const Facts& facts, Layout layout, Plan* plan) {
  plan->arena_bytes = layout.arena_bytes;
  plan->chunks = std::move(layout.chunks);
  plan->external_bytes = facts.external_bytes;
  plan->peak_bytes = plan->external_bytes + plan->arena_bytes;
  plan->output_slots = facts.output_slots;
  plan->values = std::move(layout.values);
  plan->workspace = std::move(layout.workspace);
}

void note_segments(Cut cut, const PlanOptions& options, Plan* plan) {
  plan->threads = options.threads;
  plan->intra_op = choose_intra_op(cut, options);
  plan->segment_rule = std::move(cut.rule);
  plan->segments = std::move(cut.segments);
}

void note_costs(const Facts& facts, double cost_us, Plan* plan) {
  plan->costs = facts.cost_source;
  plan->measured_nodes = facts.measured_nodes;
  plan->cost_us = cost_us;
  plan->keep_all_cost_us = facts.keep_all_cost;
}

// What can be counted in the finished plan.
void count(Plan* plan) {
  plan->nodes = plan->graph.node_count();
  for (const Node& node : plan->graph.nodes) plan->recomputed_nodes += node.origin.clone;
  const std::vector<std::int64_t> live = live_bytes(*plan);
  plan->lower_bound_bytes = live.empty() ? plan->external_bytes : *std::max_element(live.begin(), live.end());
}

}  // namespace

Plan finish_plan(const Facts& facts, ClonedGraph cloned, double cost_us, const PlanOptions& options, PassRunner* passes,
                 std::optional<Layout> laid_out) {
  Plan plan;
  plan.alignment = alignment_of(options);
  plan.chunk_bytes = options.chunk_bytes;

  // Clones stand in the graph, in execution order, with edges that make them run just in time.
  cloned.graph = passes->run(
      "rematerialize", *facts.graph, [&](Graph) { return std::move(cloned.graph); }, PassRunner::Need::always);

  // Nodes become tasks. Bytes that are used again order the nodes that use them; for several threads, bytes may be placed anew.
  std::vector<double> cost;
  for (NodeId source : cloned.source) cost.push_back(facts.cost[source]);
  Arrangement arranged = arrange(facts, cloned, cost, options, std::move(laid_out));
  plan.reuse_edges = std::move(arranged.reuse_edges);
  note_segments(std::move(arranged.cut), options, &plan);
  note_bytes(facts, std::move(arranged.layout), &plan);
  plan.graph = std::move(cloned.graph);

  // Loops and branches bring the plans of their regions, and every value gets a reason.
  plan_regions(&plan);
  give_reasons(&plan);

  note_costs(facts, cost_us, &plan);
  count(&plan);
  return plan;
}

}  // namespace tapedeck
