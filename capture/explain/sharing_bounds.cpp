// Plans the same graph once for each set of rules that say which values may share bytes. A search for an order of the nodes
// runs for each set, and every set may use the orders that all searches found. Otherwise a set with more rules could have the
// higher peak only because its own search found a worse order.
#include <tapedeck/capture/explain/sharing_bounds.h>

#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/choose_candidate.h>
#include <tapedeck/capture/planner/finish_plan.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/order/order_like.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/prepare.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>

namespace tapedeck {

namespace {

constexpr Sharing kRules[] = {Sharing::windows, Sharing::in_place, Sharing::add_to, Sharing::parts, Sharing::updates};

PlanOptions without_recomputing(PlanOptions options) {
  options.strategy = Strategy::none;
  options.budget = -1;
  options.budget_percent = -1;
  options.wishes = {};  // nor by wishes, nor by marks of the program
  options.near = {};
  options.progress = {};
  return options;
}

PlanOptions with_rules(PlanOptions options, Sharing sharing) {
  options.sharing = sharing;
  return options;
}

bool keeps_all(const Candidate& c) { return c.keeps_all(); }

// The graph under some of the rules, in all orders that come up. The stages are the planner's, without recomputation.
class RuleSet {
 public:
  RuleSet(std::string rules, Sharing sharing, const Graph& captured, const PlanOptions& options)
      : rules_(std::move(rules)), options_(with_rules(options, sharing)), planning_(options_, LookFor::floor, Looks::at_none) {
    planning_.watch.check();
    add(make_order("recorded", prepare(captured, &planning_.passes, sharing), options_));
    tried_.push_back(own_sources(recorded().graph));
  }
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  // The order that a search finds; empty if the recorded order is as good.
  std::vector<NodeId> search_order() {
    const Graph& graph = recorded().graph;
    NodeOrder found = find_order(recorded().facts, graph, own_sources(graph), planning_.effort.order(planning_.step_size()));
    planning_.watch.check();
    return std::move(found.nodes);
  }

  Graph in_order(const std::vector<NodeId>& nodes) const {
    return nodes.empty() ? recorded().graph : reorder(recorded().graph, nodes);
  }

  void try_order_of(const Graph& like) {
    std::vector<NodeId> nodes = order_like(recorded().facts, like, options_.split_phases);
    if (std::find(tried_.begin(), tried_.end(), nodes) != tried_.end()) return;
    planning_.watch.check();
    add(make_order("searched", reorder(recorded().graph, nodes), options_, recorded().facts.keep_all_cost));
    tried_.push_back(std::move(nodes));
  }

  bool is_as_good_as(const SharingBound& other) {
    return least_bound() <= other.lower_bound_bytes && best().peak <= other.tight_peak_bytes;
  }

  SharingBound result() {
    Candidate& candidate = best();
    const std::int64_t tight = candidate.peak;
    return {rules_, options_.sharing, least_bound(), options_.threads > 1 ? placed_peak(candidate) : tight, tight};
  }

 private:
  const Order& recorded() const { return planning_.recorded(); }

  void add(std::unique_ptr<Order> order) {
    const std::size_t first = planning_.orders.size();
    add_order(std::move(order), &planning_);
    for (std::size_t i = first; i < planning_.orders.size(); ++i) add_keep_all(*planning_.orders[i], &planning_);
  }

  std::int64_t least_bound() const { return least_live(planning_.candidates, keeps_all).live_peak; }

  Candidate& best() {
    Candidate& best = least_peak(keeps_all, &planning_);
    planning_.layouts.searched_peak(best);
    return best;
  }

  std::int64_t placed_peak(Candidate& c) {
    PlacedCandidate placed = planning_.layouts.place(c, options_.budget, true);
    return finish_plan(c.order->facts, std::move(placed.cloned), c.cost, options_, &planning_.passes, std::move(placed.layout))
        .peak_bytes;
  }

  const std::string rules_;
  const PlanOptions options_;
  Planning planning_;
  std::vector<std::vector<NodeId>> tried_;
};

std::deque<RuleSet> fewer_rules(const Graph& captured, const PlanOptions& options) {
  std::deque<RuleSet> sets;
  for (Sharing rule : kRules)
    if (has(options.sharing, rule))
      sets.emplace_back(std::string("without ") + sharing_name(rule), options.sharing & ~rule, captured, options);
  sets.emplace_back("none", Sharing::none, captured, options);
  return sets;
}

// A set of rules that is as good as the shown plan, in the order of that plan, needs no other order.
void try_orders(const Plan& shown, const SharingBound& all, std::deque<RuleSet>* sets) {
  std::vector<RuleSet*> worse;
  for (RuleSet& s : *sets) {
    s.try_order_of(shown.graph);
    if (!s.is_as_good_as(all)) worse.push_back(&s);
  }
  std::vector<Graph> found;
  for (RuleSet* s : worse) found.push_back(s->in_order(s->search_order()));
  for (RuleSet* s : worse)
    for (const Graph& g : found) s->try_order_of(g);
}

void take_better(const SharingBound& from, SharingBound* to) {
  to->lower_bound_bytes = std::min(to->lower_bound_bytes, from.lower_bound_bytes);
  if (from.tight_peak_bytes >= to->tight_peak_bytes) return;
  to->tight_peak_bytes = from.tight_peak_bytes;
  to->peak_bytes = from.peak_bytes;
}

// A rule need not be used: a result with fewer rules counts for more rules.
void take_better_of_fewer(std::vector<SharingBound>* bounds) {
  for (std::size_t i = 1; i + 1 < bounds->size(); ++i) take_better(bounds->back(), &(*bounds)[i]);
  const SharingBound& all = bounds->front();
  SharingBound least = all;
  least.rules = "least found";
  for (const SharingBound& b : *bounds) take_better(b, &least);
  if (least.lower_bound_bytes < all.lower_bound_bytes || least.tight_peak_bytes < all.tight_peak_bytes)
    bounds->insert(bounds->begin() + 1, least);
}

}  // namespace

const char* sharing_name(Sharing rule) {
  constexpr const char* names[] = {"windows", "in_place", "add_to", "parts", "updates"};
  for (std::size_t i = 0; i < std::size(kRules); ++i)
    if (rule == kRules[i]) return names[i];
  return rule == Sharing::all ? "all" : rule == Sharing::none ? "none" : "";
}

std::vector<SharingBound> sharing_bounds(const Graph& given, const PlanOptions& options, const Plan* shown) {
  const Graph captured = without_marks(given);
  const PlanOptions how = without_recomputing(options);
  Plan own;
  if (!shown || shown->recomputed_nodes > 0) {
    own = make_plan(captured, how);
    shown = &own;
  }
  std::vector<SharingBound> bounds = {
      {"all", options.sharing, shown->lower_bound_bytes, shown->peak_bytes, shown->segment_rule.tight_peak_bytes}};
  std::deque<RuleSet> sets = fewer_rules(captured, how);
  if (how.ordering == Ordering::automatic) try_orders(*shown, bounds.front(), &sets);
  for (RuleSet& s : sets) bounds.push_back(s.result());
  take_better_of_fewer(&bounds);
  return bounds;
}

}  // namespace tapedeck
