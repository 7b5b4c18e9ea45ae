// Collects the facts: homes of values, windows on roots, then by node the roots it reads and makes, its takeovers and its cost.
// list_by_windows() is repeated when parts are chosen, because a part is a window on the value that joins it.
#include <tapedeck/capture/planner/facts/facts.h>

#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/cost/node_costs.h>

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

// Fills lists of roots, in which no root stands twice for one node.
class ListedOnce {
 public:
  ListedOnce(std::size_t values, std::vector<ValueId>* list) : list_(list), listed_for_(values, kNone) {}
  void add(NodeId n, ValueId root) {
    if (std::exchange(listed_for_[root], n) != n) list_->push_back(root);
  }

 private:
  std::vector<ValueId>* list_;
  std::vector<NodeId> listed_for_;  // by root: the last node in whose list it stands
};

// By root: the first node that writes its bytes.
std::vector<NodeId> first_writers(const Graph& graph, const std::vector<Window>& windows) {
  std::vector<NodeId> first(graph.values.size(), Facts::kNever);
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (windows[v].viewed == v) first[windows[v].root] = std::min(first[windows[v].root], graph.values[v].node);
  return first;
}

void add_node_lists(const Graph& graph, NodeId n, const std::vector<NodeId>& first_writer, ListedOnce* reads, ListedOnce* makes,
                    Facts* facts) {
  const Node& node = graph.nodes[n];
  for (ValueId v : graph.inputs(node)) reads->add(n, facts->windows[v].root);
  std::int64_t extra = 0;
  bool fixed = (traits_within(graph, node) & kEffect) != 0;
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
    const Window& w = facts->windows[v];
    if (w.viewed != v) continue;
    if (first_writer[w.root] == n)
      makes->add(n, w.root);
    else
      reads->add(n, w.root);
    fixed |= w.joined != kNone || first_writer[w.root] != n;
    if (!facts->in_arena(v)) extra += graph.values[v].type.bytes();
  }
  facts->fixed_node.push_back(fixed);
  facts->window_node.push_back(node.n_outputs == 1 && facts->windows[node.first_output].viewed != node.first_output);
  facts->clone_extra.push_back(extra);
  if (has(facts->sharing, Sharing::in_place))
    for (const RootPair& pair :
         takeovers_in_arena(graph, n, facts->windows, [&](ValueId root) { return facts->in_arena(root); }))
      facts->pairs.push_back(pair);
  facts->read_first.push_back(static_cast<std::int32_t>(facts->read_lists.size()));
  facts->made_first.push_back(static_cast<std::int32_t>(facts->made.size()));
  facts->pair_first.push_back(static_cast<std::int32_t>(facts->pairs.size()));
}

// Everything that depends on which values are windows on which.
void list_by_windows(std::vector<Window> windows, Facts* facts) {
  const Graph& graph = *facts->graph;
  facts->windows = std::move(windows);
  facts->homes = facts->own_homes;
  for (ValueId v = 0; v < graph.value_count(); ++v) facts->homes[v] = facts->own_homes[facts->windows[v].root];
  facts->external_bytes = count_external(graph, *facts);

  facts->bytes.assign(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (facts->in_arena(v) && facts->windows[v].root == v) facts->bytes[v] = graph.values[v].type.bytes();

  facts->read_lists.clear(), facts->made.clear(), facts->pairs.clear();
  facts->fixed_node.clear(), facts->window_node.clear(), facts->clone_extra.clear();
  facts->read_first = facts->made_first = facts->pair_first = {0};
  const std::vector<NodeId> first_writer = first_writers(graph, facts->windows);
  ListedOnce reads(graph.values.size(), &facts->read_lists), makes(graph.values.size(), &facts->made);
  for (NodeId n = 0; n < graph.node_count(); ++n) add_node_lists(graph, n, first_writer, &reads, &makes, facts);

  facts->cost = facts->kernel_cost;
  facts->keep_all_cost = 0;
  const auto window_of = [&](ValueId v) { return facts->windows[v]; };
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    if (facts->is_window(n)) facts->cost[n] = 0;
    if (const std::int64_t joined = joined_already(graph, graph.nodes[n], window_of); joined > 0)
      facts->cost[n] *=
          1 - static_cast<double>(joined) / static_cast<double>(graph.values[graph.nodes[n].first_output].type.numel());
    facts->keep_all_cost += facts->cost[n];
  }
}

// Without the rule for windows everything has bytes of its own.
std::vector<char> own_bytes(const Graph& graph, Sharing sharing) {
  return has(sharing, Sharing::windows) ? values_with_own_bytes(graph) : std::vector<char>(graph.values.size(), 1);
}

}  // namespace

Facts collect_facts(const Graph& graph, const CostModel* costs, Sharing sharing) {
  std::vector<std::int64_t> workspaces;
  workspaces.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) workspaces.push_back(kernel_workspace(graph, node));
  return collect_facts(graph, std::move(workspaces), costs, sharing);
}

Facts collect_facts(const Graph& graph, std::vector<std::int64_t> workspaces, const CostModel* costs, Sharing sharing) {
  Facts facts;
  facts.graph = &graph;
  NodeCosts cost = cost_nodes(graph, costs);
  facts.kernel_cost = std::move(cost.us);
  facts.cost_source = std::move(cost.source);
  facts.measured_nodes = cost.measured;
  facts.workspace = std::move(workspaces);
  facts.own_homes = find_homes(graph, &facts.output_slots);
  facts.overwritten.resize(graph.values.size(), Facts::kNever);
  for (const Update& u : graph.updates) facts.overwritten[u.state] = graph.values[u.value].node;
  facts.sharing = sharing;

  const Readers readers(graph);
  list_by_windows(find_windows(graph, readers, own_bytes(graph, sharing)), &facts);
  return facts;
}

void use_parts(const std::vector<Window>& parts, const Readers& readers, Facts* facts) {
  const Graph& graph = *facts->graph;
  facts->has_parts = std::any_of(parts.begin(), parts.end(), [](const Window& w) { return w.root != kNone; });
  list_by_windows(find_windows(graph, readers, own_bytes(graph, facts->sharing), parts), facts);
}

}  // namespace tapedeck
