#include <tapedeck/capture/analysis/facts.h>

#include <tapedeck/capture/analysis/cost.h>
#include <tapedeck/capture/cost_model.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

std::vector<Home> find_homes(const Graph& graph, std::vector<Type>* output_slots) {
  std::vector<Home> homes(graph.values.size());
  for (ValueId v = 0; v < graph.n_inputs; ++v) homes[v] = {Where::input, v};
  for (ValueId s = 0; s < graph.n_state; ++s) homes[graph.n_inputs + s] = {Where::state, s};
  for (const Node& node : graph.nodes) {
    if (!graph.literal(node)) continue;
    const auto index = static_cast<std::int32_t>(graph.literal(node) - graph.constants.data());
    homes[node.first_output] = {Where::constant, index};
  }
  for (const Update& u : graph.updates) homes[u.value] = {Where::state, u.state - graph.n_inputs};
  for (ValueId v : graph.outputs) {
    if (homes[v].where != Where::arena) continue;
    homes[v] = {Where::output, static_cast<std::int32_t>(output_slots->size())};
    output_slots->push_back(graph.values[v].type);
  }
  return homes;
}

std::int64_t count_external(const Graph& graph, const Facts& facts) {
  std::int64_t bytes = 0;
  for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v) bytes += graph.values[v].type.bytes();
  for (const Type& slot : facts.output_slots) bytes += slot.bytes();
  std::vector<char> counted(graph.constants.size(), 0);
  for (ValueId v = graph.n_inputs + graph.n_state; v < graph.value_count(); ++v) {
    if (facts.homes[v].where != Where::constant || facts.windows[v].root != v || counted[facts.homes[v].slot]) continue;
    counted[facts.homes[v].slot] = 1;
    bytes += graph.values[v].type.bytes();
  }
  return bytes;
}

void add_node_lists(const Graph& graph, NodeId n, Facts* facts) {
  const Node& node = graph.nodes[n];
  const bool window = node.n_outputs == 1 && facts->windows[node.first_output].root != node.first_output;
  facts->window_node.push_back(window);
  if (window) facts->cost[n] = 0;

  const auto begin = facts->read_lists.size();
  for (ValueId v : graph.inputs(node)) {
    const ValueId root = facts->windows[v].root;
    const auto first = facts->read_lists.begin() + static_cast<std::ptrdiff_t>(begin);
    if (std::find(first, facts->read_lists.end(), root) == facts->read_lists.end()) facts->read_lists.push_back(root);
  }
  std::int64_t extra = 0;
  for (ValueId v = node.first_output; !window && v < node.first_output + node.n_outputs; ++v) {
    facts->made.push_back(v);
    if (!facts->in_arena(v)) extra += graph.values[v].type.bytes();
  }
  facts->clone_extra.push_back(extra);
  for (const Takeover& t : find_takeovers(graph, n, facts->windows)) {
    const RootPair pair{facts->windows[graph.inputs(node)[t.input]].root, node.first_output + t.output};
    if (facts->in_arena(pair.from) && facts->in_arena(pair.to)) facts->pairs.push_back(pair);
  }
  facts->read_first.push_back(static_cast<std::int32_t>(facts->read_lists.size()));
  facts->made_first.push_back(static_cast<std::int32_t>(facts->made.size()));
  facts->pair_first.push_back(static_cast<std::int32_t>(facts->pairs.size()));
}

}  // namespace

Facts collect_facts(const Graph& graph, const CostModel* costs) {
  Facts facts;
  facts.graph = &graph;
  NodeCosts cost = cost_nodes(graph, costs);
  facts.cost = std::move(cost.us);
  facts.cost_source = std::move(cost.source);
  facts.measured_nodes = cost.measured;
  facts.workspace = node_workspaces(graph);
  facts.windows = find_windows(graph, Readers(graph), values_with_own_bytes(graph));
  facts.homes = find_homes(graph, &facts.output_slots);
  for (ValueId v = 0; v < graph.value_count(); ++v) facts.homes[v] = facts.homes[facts.windows[v].root];
  facts.external_bytes = count_external(graph, facts);

  facts.bytes.resize(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (facts.in_arena(v) && facts.windows[v].root == v) facts.bytes[v] = graph.values[v].type.bytes();

  facts.overwritten.resize(graph.values.size(), Facts::kNever);
  for (const Update& u : graph.updates) facts.overwritten[u.state] = graph.values[u.value].node;

  facts.read_first = facts.made_first = facts.pair_first = {0};
  for (NodeId n = 0; n < graph.node_count(); ++n) add_node_lists(graph, n, &facts);
  for (double us : facts.cost) facts.keep_all_cost += us;
  return facts;
}

}  // namespace tapedeck
