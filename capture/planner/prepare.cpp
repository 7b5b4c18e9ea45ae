// The first stage of planning. What it makes of a captured graph:
//
//     graph g(%x: f32[4]) state(%s: f32[4]) {         graph g(%x: f32[4]) state(%s: f32[4]) {
//       %0: f32[4] = copy(%x)                           %y: f32[4] = exp(%x)
//       %y: f32[4] = exp(%0)                            %3: f32[4] = copy(%x)        an update gets bytes of its own
//       return %y  update %s = %x                       return %y  update %s = %3
//     }                                               }
//
// simplify() is the list of passes that change no bit, in the order that suits them.
#include <tapedeck/capture/planner/prepare.h>

#include <tapedeck/capture/passes/passes.h>

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

  // Elementwise nodes that hand values to each other go over their operands once.
  graph = passes->run("fuse", std::move(graph));

  // After this pass the value of every update can be written straight into its state, and no output lies in the bytes of a
  // state that the step overwrites.
  if (has(sharing, Sharing::updates)) return passes->run("insert_copies", std::move(graph));
  return passes->run(
      "insert_copies", std::move(graph), [](Graph g) { return insert_copies(std::move(g), false); }, PassRunner::Need::always);
}

}  // namespace tapedeck
