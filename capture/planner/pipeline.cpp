#include <tapedeck/capture/planner/pipeline.h>

#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/plan/placement_reasons.h>
#include <tapedeck/capture/planner/layout/layout.h>
#include <tapedeck/capture/planner/region_plans.h>
#include <tapedeck/capture/planner/segments/arrange_for_threads.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace tapedeck {

namespace {

// Numbers shift when nodes come and go, names do not: %12 becomes %v12 in everything the planner shows.
Graph name_values(Graph graph) {
  std::unordered_set<std::string_view> taken;  // of the names that could be met
  for (const Value& v : graph.values)
    if (v.name.view().size() > 1 && v.name.view()[0] == 'v' && v.name.view()[1] >= '0' && v.name.view()[1] <= '9')
      taken.insert(v.name.view());
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (!graph.values[v].name.empty()) continue;
    std::string name = "v" + std::to_string(v);
    while (taken.count(name)) name += "_";
    graph.values[v].name = name;
    if (name.back() == '_') taken.insert(graph.values[v].name.view());  // the others differ by their numbers
  }
  return graph;
}

// Constants are buffers, and planning numbers them as the nodes have them.
bool has_constants_in_order(const Graph& graph) {
  std::size_t next = 0;
  for (const Node& node : graph.nodes)
    if (const Literal* literal = graph.literal(node); literal && literal != graph.constants.data() + next++) return false;
  return next == graph.constants.size();
}

Graph number_constants(Graph graph) {
  if (has_constants_in_order(graph)) return graph;
  Rewriter rewriter(graph);
  for (NodeId n = 0; n < graph.node_count(); ++n) rewriter.copy(n);
  return rewriter.finish();
}

}  // namespace

Graph simplify(Graph graph, PassRunner* passes) {
  // Nodes that nobody needs cost memory and time, and would mislead every choice below.
  graph = passes->run("dead_code", std::move(graph));

  // A loop keeps for backward what may never be read.
  graph = passes->run("loop_results", std::move(graph));

  // Copies, conversions and views that change nothing stand between the nodes that the identities below look for.
  graph = passes->run("drop_copies", std::move(graph));
  graph = passes->run("fold_views", std::move(graph));

  // What is known now need not be computed in every step; then identities such as x * 1 = x see the numbers.
  graph = passes->run("constant_folding", std::move(graph));
  graph = passes->run("algebra", std::move(graph));

  // Equal things are computed once. It may keep a value longer, which rematerialization can undo; the reverse it cannot.
  graph = passes->run("cse", std::move(graph));

  // What joins more than another join did goes on from there: then the plan can lay all of them into one buffer.
  graph = passes->run("chain_joins", std::move(graph));

  // What does not change in a loop is computed before it.
  graph = passes->run("hoist_invariants", std::move(graph));

  // What the passes above left behind.
  return passes->run("dead_code", std::move(graph));
}

Graph prepare(const Graph& captured, PassRunner* passes, Sharing sharing) {
  // What comes in may be a person's text or a file: nothing is assumed about it.
  verify(captured);

  // Values keep recognisable names from here on.
  Graph graph = passes->run(
      "name_values", captured, [](Graph g) { return number_constants(name_values(std::move(g))); }, PassRunner::Need::always);

  // Less to plan, to run and to hold.
  graph = simplify(std::move(graph), passes);

  // Gradient pieces are added where they arise, or all at once, whichever keeps fewer bytes alive.
  if (has(sharing, Sharing::add_to)) graph = passes->run("gradient_sums", std::move(graph));

  // From here on every update can be written straight into its state, and every output has bytes of its own.
  if (has(sharing, Sharing::updates)) return passes->run("insert_copies", std::move(graph));
  return passes->run(
      "insert_copies", std::move(graph), [](Graph g) { return insert_copies(std::move(g), false); }, PassRunner::Need::always);
}

Plan finish_plan(const Facts& facts, ClonedGraph cloned, double cost_us, const PlanOptions& options, PassRunner* passes,
                 std::optional<Layout> laid_out) {
  Plan plan;
  plan.alignment = alignment_of(options);
  plan.chunk_bytes = options.chunk_bytes;

  // Clones stand in the graph, in execution order, with edges that make them run just in time.
  cloned.graph = passes->run(
      "rematerialize", *facts.graph, [&](Graph) { return std::move(cloned.graph); }, PassRunner::Need::always);

  // Every value and every workspace gets its bytes; bytes that are used again order the nodes that use them; then nodes become
  // tasks.
  std::vector<double> cost;
  for (NodeId source : cloned.source) cost.push_back(facts.cost[source]);
  Arrangement arranged = arrange(facts, cloned, cost, options, std::move(laid_out));
  Layout& layout = arranged.layout;
  plan.arena_bytes = layout.arena_bytes;
  plan.chunks = std::move(layout.chunks);
  plan.external_bytes = facts.external_bytes;
  plan.peak_bytes = plan.external_bytes + plan.arena_bytes;
  plan.output_slots = facts.output_slots;
  plan.reuse_edges = std::move(arranged.reuse_edges);
  plan.threads = options.threads;
  plan.intra_op = choose_intra_op(arranged.cut, options);
  plan.segment_rule = std::move(arranged.cut.rule);
  plan.segments = std::move(arranged.cut.segments);

  plan.graph = std::move(cloned.graph);
  plan.values = std::move(layout.values);
  plan.workspace = std::move(layout.workspace);
  plan_regions(&plan);
  give_reasons(&plan);

  plan.costs = facts.cost_source;
  plan.measured_nodes = facts.measured_nodes;
  plan.cost_us = cost_us;
  plan.keep_all_cost_us = facts.keep_all_cost;
  plan.nodes = plan.graph.node_count();
  for (const Node& node : plan.graph.nodes) plan.recomputed_nodes += node.origin.clone;
  const std::vector<std::int64_t> live = live_bytes(plan);
  plan.lower_bound_bytes = live.empty() ? plan.external_bytes : *std::max_element(live.begin(), live.end());
  return plan;
}

double schedule_cost(const Facts& facts, const RunLists& runs) {
  double us = facts.keep_all_cost;
  std::vector<char> has_run(facts.graph->nodes.size(), 0);
  for (const auto& stage : runs)
    for (NodeId n : stage)
      if (std::exchange(has_run[n], 1)) us += facts.cost[n];
  return us;
}

}  // namespace tapedeck
