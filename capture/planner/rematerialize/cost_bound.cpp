// The bound of cost_bound.h. One walk up and one walk down from a node k find the values that straddle it; their makers are
// the items of a fractional knapsack, which takes them in the order of cost per byte. The walks from all nodes together take
// O(nodes x edges), so of large graphs only some nodes are looked at, evenly spread over the order.
#include <tapedeck/capture/planner/rematerialize/cost_bound.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostSteps = 60'000'000;  // of all walks together, about
constexpr std::int64_t kLeastWalks = 100;
constexpr std::int64_t kMostCharges = 20'000'000;  // of all charged knapsacks of a budget together, about
constexpr std::int64_t kLeastAgain = 8;
constexpr int kBranches = 40;                 // of the search for whole items
constexpr std::int64_t kKnapsackTrials = 30;  // of a charged knapsack
constexpr double kRounding = 1e-12;           // sums in another order may differ by this part

// The most bytes of operands that results of k may be written over: an operand is given to one result, and a result takes one
// operand. `is_free` says which operands may be given.
template <class IsFree>
std::int64_t most_taken_over(const Facts& facts, NodeId k, IsFree is_free) {
  std::vector<std::pair<ValueId, std::int64_t>> by_operand, by_result;  // and the most bytes
  const auto note = [](ValueId v, std::int64_t bytes, auto* list) {
    for (auto& [known, most] : *list)
      if (known == v) return void(most = std::max(most, bytes));
    list->push_back({v, bytes});
  };
  for (const RootPair& pair : facts.takeovers(k)) {
    if (!is_free(pair.from)) continue;
    note(pair.from, facts.bytes[pair.from], &by_operand);
    note(pair.to, facts.bytes[pair.from], &by_result);
  }
  std::int64_t given = 0, taken = 0;
  for (const auto& entry : by_operand) given += entry.second;
  for (const auto& entry : by_result) taken += entry.second;
  return std::min(given, taken);
}

bool may_be_taken_over(const Facts& facts, NodeId k, ValueId root) {
  const auto pairs = facts.takeovers(k);
  return std::any_of(pairs.begin(), pairs.end(), [&](const RootPair& pair) { return pair.from == root; });
}

}  // namespace

CostBounds::Walk::Walk(const Facts& facts) : given(facts.graph->nodes.size(), 0), number(facts.graph->nodes.size(), 0) {
  for (Marks* marks : {&written, &found, &own}) marks->set_in.assign(facts.graph->values.size(), 0);
  gives.set_in.assign(facts.graph->nodes.size(), 0);
  node_seen.set_in.assign(facts.graph->nodes.size(), 0);
}

CostBounds::CostBounds(const Facts& facts, const Watch& watch) : facts_(facts), watch_(watch) {
  list_neighbours();
  list_roots();
  choose_nodes();
  most_.assign(nodes_.size(), std::numeric_limits<std::int64_t>::max());
}

void CostBounds::list_neighbours() {
  const Graph& graph = *facts_.graph;
  std::vector<std::int32_t> count(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes) {
    for (ValueId v : graph.inputs(node))
      if (const NodeId maker = graph.values[v].node; maker != kNone) operands_.items.push_back(maker), ++count[maker];
    operands_.first.push_back(static_cast<std::int32_t>(operands_.items.size()));
  }
  for (std::int32_t n : count) readers_.first.push_back(readers_.first.back() + n);
  readers_.items.resize(operands_.items.size());
  std::vector<std::int32_t> next(readers_.first.begin(), readers_.first.end() - 1);
  for (NodeId n = 0; n < graph.node_count(); ++n)
    for (NodeId maker : operands_.of(n)) readers_.items[next[maker]++] = n;
}

void CostBounds::list_roots() {
  const Graph& graph = *facts_.graph;
  needed_by_.assign(graph.values.size(), 0);
  const auto counts = [&](ValueId root) { return facts_.in_arena(root) && facts_.bytes[root] > 0; };
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (facts_.windows[v].viewed == v && counts(facts_.windows[v].root)) writes_.items.push_back(facts_.windows[v].root);
    if (!facts_.is_window(n))
      for (ValueId root : facts_.reads(n))
        if (counts(root)) needs_.items.push_back(root), ++needed_by_[root];
    writes_.first.push_back(static_cast<std::int32_t>(writes_.items.size()));
    needs_.first.push_back(static_cast<std::int32_t>(needs_.items.size()));
  }
}

// A window needs nothing that its readers do not need.
void CostBounds::choose_nodes() {
  std::vector<NodeId> all;
  for (NodeId n = 0; n < facts_.graph->node_count(); ++n)
    if (!facts_.is_window(n)) all.push_back(n);
  const auto n = static_cast<std::int64_t>(all.size());
  const auto steps_of_walk = static_cast<std::int64_t>(1 + facts_.graph->nodes.size() + 2 * operands_.items.size());
  const std::int64_t walks = std::min(n, std::max(kLeastWalks, kMostSteps / steps_of_walk));
  for (std::int64_t i = 0; i < walks; ++i) nodes_.push_back(all[static_cast<std::size_t>(i * n / walks)]);
}

// Marks the roots that ancestors of k write.
void CostBounds::go_up(NodeId k, Walk* walk) const {
  walk->above.clear();
  walk->nodes.assign(1, k);
  while (!walk->nodes.empty()) {
    const NodeId n = walk->nodes.back();
    walk->nodes.pop_back();
    for (NodeId above : operands_.of(n)) {
      if (!walk->node_seen.set(above)) continue;
      walk->nodes.push_back(above);
      walk->above.push_back(above);
      for (ValueId root : writes_.of(above)) walk->written.set(root);
    }
  }
}

// Lists the roots that ancestors of k write and descendants of k read.
void CostBounds::go_down(NodeId k, Walk* walk) const {
  walk->nodes.assign(1, k);
  while (!walk->nodes.empty()) {
    const NodeId n = walk->nodes.back();
    walk->nodes.pop_back();
    for (NodeId below : readers_.of(n)) {
      if (!walk->node_seen.set(below)) continue;
      walk->nodes.push_back(below);
      for (ValueId root : needs_.of(below))
        if (walk->written.has(root) && walk->found.set(root)) walk->straddling.push_back(root);
    }
  }
}

// The operands and results of k, which are marked as its own, and its workspace; but for operands that straddle k.
std::int64_t CostBounds::own_bytes(NodeId k, Walk* walk) const {
  std::int64_t bytes = facts_.workspace[k];
  const auto add = [&](ValueId root) {
    if (walk->own.set(root) && !walk->found.has(root)) bytes += facts_.bytes[root];
  };
  for (ValueId root : needs_.of(k)) add(root);
  for (ValueId root : writes_.of(k)) add(root);
  return bytes - most_taken_over(facts_, k, [&](ValueId root) { return !walk->found.has(root); });
}

void CostBounds::weigh(ValueId root, NodeId k, Walk* walk, Load* load) const {
  const NodeId maker = facts_.graph->values[root].node;
  const bool is_held = walk->own.has(root) && !may_be_taken_over(facts_, k, root);
  if (is_held || !facts_.can_repeat(maker)) {
    load->stuck += facts_.bytes[root];
    return;
  }
  if (walk->gives.set(maker)) walk->givers.push_back(maker);
  walk->given[maker] += facts_.bytes[root];
  load->movable += facts_.bytes[root];
}

void CostBounds::load_at(NodeId k, Walk* walk, Load* load) const {
  for (Marks* marks : {&walk->node_seen, &walk->written, &walk->found, &walk->own, &walk->gives}) ++marks->round;
  for (NodeId giver : walk->givers) walk->given[giver] = 0;
  walk->straddling.clear(), walk->givers.clear(), load->items.clear();
  load->movable = 0;
  go_up(k, walk);
  go_down(k, walk);
  load->stuck = own_bytes(k, walk);
  for (ValueId root : walk->straddling) weigh(root, k, walk, load);
  for (NodeId giver : walk->givers) load->items.push_back({facts_.cost[giver], walk->given[giver]});
}

// Whether the value, which an ancestor of k makes, is kept or made again for the ancestors that read it alone: it does not
// straddle k, and k does not read it either.
bool CostBounds::is_charged(ValueId root, const Walk& walk) const {
  return !walk.found.has(root) && !walk.own.has(root) && !walk.gives.has(facts_.graph->values[root].node);
}

double CostBounds::charged_cost(NodeId k, double guess, std::int64_t room, Walk* walk, Load* load,
                                ChargedKnapsack* knapsack) const {
  load_at(k, walk, load);
  std::sort(walk->above.begin(), walk->above.end());
  knapsack->clear();
  for (std::size_t i = 0; i < walk->above.size(); ++i) {
    const NodeId n = walk->above[i];
    walk->number[n] = static_cast<std::int32_t>(i);
    knapsack->add_node(facts_.cost[n], walk->gives.has(n) ? walk->given[n] : 0);
    for (ValueId root : needs_.of(n)) {
      if (!is_charged(root, *walk)) continue;
      const NodeId maker = facts_.graph->values[root].node;
      const bool repeats = facts_.can_repeat(maker);
      knapsack->add_operand(repeats ? walk->number[maker] : ChargedKnapsack::kKeptOnly, facts_.bytes[root],
                            1.0 / static_cast<double>(std::max<std::size_t>(writes_.of(maker).size(), 1)),
                            1.0 / needed_by_[root]);
    }
  }
  return knapsack->least_cost(load->stuck + load->movable - room, guess);
}

// With the items of the load taken as wholes.
double CostBounds::whole_cost(std::int64_t room, Load* load) const {
  const std::int64_t excess = load->stuck + load->movable - room;
  fractional_cover(&load->items, excess);
  return whole_cover(load->items, excess, kBranches);
}

CostBound CostBounds::at(std::int64_t budget) {
  CostBound bound;
  Walk walk(facts_);
  Load load;
  std::vector<Asking> asking;
  const std::int64_t room = budget - facts_.external_bytes;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (most_[i] <= room) continue;
    watch_.check();
    load_at(nodes_[i], &walk, &load);
    most_[i] = load.stuck + load.movable;
    if (most_[i] <= room) continue;
    if (load.stuck > room && load.stuck + facts_.external_bytes > bound.stuck_bytes)
      bound = {0, nodes_[i], false, load.stuck + facts_.external_bytes};
    if (!bound.may_fit) continue;
    const Cover cover = fractional_cover(&load.items, load.stuck + load.movable - room);
    asking.push_back({nodes_[i], cover.cost, cover.per_byte});
  }
  if (bound.may_fit) take_most(room, std::move(asking), &walk, &load, &bound);
  return bound;
}

// The nodes that ask for the most are asked again with the operands counted.
void CostBounds::take_most(std::int64_t room, std::vector<Asking> asking, Walk* walk, Load* load, CostBound* bound) const {
  std::stable_sort(asking.begin(), asking.end(), [](const Asking& a, const Asking& b) { return a.cost > b.cost; });
  const auto steps = kKnapsackTrials * static_cast<std::int64_t>(1 + facts_.graph->nodes.size() + needs_.items.size());
  const auto again = static_cast<std::size_t>(std::max(kLeastAgain, kMostCharges / steps));
  ChargedKnapsack knapsack;
  for (std::size_t i = 0; i < asking.size(); ++i) {
    double cost = asking[i].cost;
    if (i < again) {
      watch_.check();
      cost = std::max(cost, charged_cost(asking[i].node, asking[i].per_byte, room, walk, load, &knapsack));
      cost = std::max(cost, whole_cost(room, load));
    }
    if (cost > bound->extra_us) bound->extra_us = cost, bound->at = asking[i].node;
  }
  bound->extra_us = std::max(bound->extra_us - kRounding * (facts_.keep_all_cost + bound->extra_us), 0.0);
}

}  // namespace tapedeck
