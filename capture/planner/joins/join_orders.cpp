// Looks for an order and a choice of parts together: an order for the parts, then parts for that order, a few rounds at most.
// For small graphs with few choices of parts it searches an order for each choice, which is exact. A choice is by value, so it
// is renamed whenever the nodes change their order (places_of_values).
#include <tapedeck/capture/planner/joins/join_orders.h>

#include <tapedeck/capture/planner/joins/join_choice.h>
#include <tapedeck/capture/planner/schedules/schedule.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

constexpr int kMostRounds = 3;               // of orders and parts improving each other
constexpr std::int64_t kMostChoices = 4096;  // of parts, each with a search of its own

// By value of `from`: which one it is in `to`, which is reorder(from, nodes).
std::vector<ValueId> places_of_values(const Graph& from, const std::vector<NodeId>& nodes, const Graph& to) {
  std::vector<ValueId> place(from.values.size());
  for (ValueId v = 0; v < from.n_inputs + from.n_state; ++v) place[v] = v;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = from.nodes[nodes[i]];
    for (ValueId k = 0; k < node.n_outputs; ++k) place[node.first_output + k] = to.nodes[i].first_output + k;
  }
  return place;
}

PartChoice renamed(const PartChoice& choice, const std::vector<ValueId>& place) {
  PartChoice moved(choice.size(), kNone);
  for (std::size_t v = 0; v < choice.size(); ++v)
    if (choice[v] != kNone) moved[place[v]] = place[choice[v]];
  return moved;
}

std::vector<ValueId> inverse(const std::vector<ValueId>& place) {
  std::vector<ValueId> origin(place.size());
  for (std::size_t v = 0; v < place.size(); ++v) origin[place[v]] = static_cast<ValueId>(v);
  return origin;
}

std::vector<std::int64_t> in_order(const std::vector<std::int64_t>& by_node, const std::vector<NodeId>& nodes) {
  std::vector<std::int64_t> ordered;
  ordered.reserve(nodes.size());
  for (NodeId n : nodes) ordered.push_back(by_node[n]);
  return ordered;
}

// The graph in an order, and what is known of it there.
struct InOrder {
  InOrder(const Facts& plain, std::vector<NodeId> order)
      : nodes(order.empty() ? own_sources(*plain.graph) : std::move(order)),
        graph(reorder(*plain.graph, nodes)),
        facts(collect_facts(graph, in_order(plain.workspace, nodes), nullptr, plain.sharing)),
        readers(graph),
        place(places_of_values(*plain.graph, nodes, graph)) {}
  InOrder(const InOrder&) = delete;

  PartChoice here(const PartChoice& choice) const { return renamed(choice, place); }
  PartChoice back(const PartChoice& choice) const { return renamed(choice, inverse(place)); }

  const std::vector<NodeId> nodes;
  const Graph graph;
  const Facts facts;
  const Readers readers;
  const std::vector<ValueId> place;  // by value of the graph as it stands
};

class JoinedOrderFinder {
 public:
  JoinedOrderFinder(const Facts& plain, const JoinedOrder& known, const OrderOptions& options)
      : plain_(plain), options_(options), readers_(*plain.graph), best_(known) {}

  JoinedOrder find() {
    if (try_all_choices()) return std::move(best_);
    try_lists();
    if (joins_something(best_.parts)) improve(best_.nodes, best_.parts);
    improve(best_.nodes, all_parts());
    return std::move(best_);
  }

 private:
  bool take(JoinedOrder found) {
    if (found.live_peak >= best_.live_peak) return false;
    best_ = std::move(found);
    return true;
  }

  static bool joins_something(const PartChoice& parts) {
    return std::any_of(parts.begin(), parts.end(), [](ValueId whole) { return whole != kNone; });
  }

  PartChoice all_parts() const {
    PartChoice all(plain_.graph->values.size(), kNone);
    for (const PartPlace& place : part_places(readers_, plain_))
      if (all[place.part] == kNone) all[place.part] = place.whole;
    return all;
  }

  // The parts that suit the order, these first.
  PartChoice share(const char* name, const InOrder& in, const PartChoice& first) {
    Facts facts = in.facts;
    share_parts(in.readers, &facts, kMostTrials, in.here(first));
    JoinedOrder found{name, in.nodes, in.back(choice_of(facts.windows)), peak_without_clones(facts)};
    PartChoice parts = found.parts;
    take(std::move(found));
    return parts;
  }

  void try_lists() {
    for (const NodeOrder& list :
         find_list_orders(plain_, *plain_.graph, own_sources(*plain_.graph), options_.split_phases, options_.cancel)) {
      if (options_.cancel && options_.cancel->load()) return;
      share(list.name.c_str(), InOrder(plain_, list.nodes), {});
    }
  }

  // An order for the parts, from the given one on; parts for that order; and so on.
  void improve(std::vector<NodeId> nodes, PartChoice parts) {
    for (int round = 0; round < kMostRounds; ++round) {
      const std::int64_t before = best_.live_peak;
      const InOrder in(plain_, std::move(nodes));
      const NodeOrder found =
          find_order(with_chosen(in.readers, in.facts, in.here(parts)), in.graph, own_sources(in.graph), options_);
      nodes.clear();
      for (NodeId n : found.nodes.empty() ? own_sources(in.graph) : found.nodes) nodes.push_back(in.nodes[n]);
      take({found.name, nodes, parts, found.live_peak});
      parts = share(found.name.c_str(), InOrder(plain_, nodes), parts);
      if (best_.live_peak >= before) break;
    }
  }

  // For each value that may be written into its place in a join: the places, one for each join that may have it. Every value
  // may also lie by itself. That choice has no entry, and a value without any other choice has no list.
  std::vector<std::vector<PartPlace>> places_by_part() const {
    std::vector<std::vector<PartPlace>> places;
    for (const PartPlace& place : part_places(readers_, plain_)) {
      PartChoice alone(plain_.graph->values.size(), kNone);
      alone[place.part] = place.whole;
      if (!with_chosen(readers_, plain_, alone).has_parts) continue;
      auto of_part =
          std::find_if(places.begin(), places.end(), [&](const auto& list) { return list.front().part == place.part; });
      if (of_part == places.end()) of_part = places.insert(places.end(), std::vector<PartPlace>{});
      of_part->push_back(place);
    }
    return places;
  }

  // The best order for every choice of parts. False if that is too much.
  bool try_all_choices() {
    if (order_problem(plain_, *plain_.graph, own_sources(*plain_.graph), false).item_count() > kExactItems) return false;
    const std::vector<std::vector<PartPlace>> places = places_by_part();
    std::int64_t choices = 1;
    for (const auto& list : places)
      if ((choices *= static_cast<std::int64_t>(list.size()) + 1) > kMostChoices) return false;
    for (std::int64_t k = choices; k-- > 1;) try_choice(choice_number(places, k));
    return true;
  }

  PartChoice choice_number(const std::vector<std::vector<PartPlace>>& places, std::int64_t k) const {
    PartChoice parts(plain_.graph->values.size(), kNone);
    for (const auto& list : places) {
      const auto digit = static_cast<std::size_t>(k) % (list.size() + 1);
      if (digit > 0) parts[list[digit - 1].part] = list[digit - 1].whole;
      k /= static_cast<std::int64_t>(list.size()) + 1;
    }
    return parts;
  }

  void try_choice(PartChoice parts) {
    OrderOptions options = options_;
    options.below = best_.live_peak;
    const NodeOrder found =
        find_order(with_chosen(readers_, plain_, parts), *plain_.graph, own_sources(*plain_.graph), options);
    take({found.name, found.nodes, std::move(parts), found.live_peak});
  }

  const Facts& plain_;
  const OrderOptions& options_;
  const Readers readers_;
  JoinedOrder best_;
};

}  // namespace

JoinedOrder find_joined_order(const Facts& plain, const JoinedOrder& known, const OrderOptions& options) {
  return JoinedOrderFinder(plain, known, options).find();
}

PartChoice move_choice(const PartChoice& choice, const Graph& from, const std::vector<NodeId>& nodes, const Graph& to) {
  return renamed(choice, places_of_values(from, nodes, to));
}

PartChoice move_choice_back(const PartChoice& choice, const Graph& from, const std::vector<NodeId>& nodes, const Graph& to) {
  return renamed(choice, inverse(places_of_values(from, nodes, to)));
}

}  // namespace tapedeck
