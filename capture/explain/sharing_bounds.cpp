#include <tapedeck/capture/explain/sharing_bounds.h>

#include <tapedeck/capture/planner/candidate_layouts.h>
#include <tapedeck/capture/planner/candidates.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/order/order_like.h>
#include <tapedeck/capture/planner/pipeline.h>
#include <tapedeck/capture/planner/planner.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace tapedeck {

namespace {

constexpr Sharing kRules[] = {Sharing::windows, Sharing::in_place, Sharing::add_to, Sharing::parts, Sharing::updates};

PlanOptions without_recomputing(PlanOptions options) {
  options.strategy = Strategy::none;
  options.budget = -1;
  options.budget_percent = -1;
  options.near = {};
  options.progress = {};
  return options;
}

PlanOptions with_rules(PlanOptions options, Sharing sharing) {
  options.sharing = sharing;
  return options;
}

// The graph under some of the rules, in all orders that come up: the planner's work but for recomputation.
class RuleSet {
 public:
  RuleSet(std::string rules, Sharing sharing, const Graph& captured, const PlanOptions& options)
      : rules_(std::move(rules)),
        options_(with_rules(options, sharing)),
        effort_(options_),
        watch_{options_.cancel, {}},
        passes_({}, Looks::at_none),
        layouts_(options_, watch_) {
    watch_.check();
    add(make_line("recorded", prepare(captured, &passes_, sharing), options_));
    tried_.push_back(own_sources(lines_.front()->graph));
  }
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  // What a search finds; empty if the recorded order is as good.
  std::vector<NodeId> search_order() {
    const Line& recorded = *lines_.front();
    NodeOrder found = find_order(recorded.facts, recorded.graph, own_sources(recorded.graph), effort_.order(step_size()));
    watch_.check();
    return std::move(found.nodes);
  }

  Graph in_order(const std::vector<NodeId>& nodes) const {
    return nodes.empty() ? lines_.front()->graph : reorder(lines_.front()->graph, nodes);
  }

  void try_order_of(const Graph& like) {
    std::vector<NodeId> nodes = order_like(lines_.front()->facts, like, options_.split_phases);
    if (std::find(tried_.begin(), tried_.end(), nodes) != tried_.end()) return;
    watch_.check();
    add(make_line("searched", reorder(lines_.front()->graph, nodes), options_, lines_.front()->facts.keep_all_cost));
    tried_.push_back(std::move(nodes));
  }

  bool is_as_good_as(const SharingBound& other) {
    return least_bound() <= other.lower_bound_bytes && best().peak <= other.tight_peak_bytes;
  }

  SharingBound result() {
    Offer& offer = best();
    const std::int64_t tight = offer.peak;
    return {rules_, options_.sharing, least_bound(), options_.threads > 1 ? placed_peak(offer) : tight, tight};
  }

 private:
  StepSize step_size() const {
    const Line& recorded = *lines_.front();
    return {recorded.graph.nodes.size(), recorded.graph.values.size(), recorded.facts.keep_all_cost};
  }

  void add(std::unique_ptr<Line> line) {
    lines_.push_back(std::move(line));
    add_offers(lines_.back().get(), false, watch_, &offers_);
    if (!has(options_.sharing, Sharing::parts)) return;
    std::unique_ptr<Line> joined = with_parts(*lines_.back(), effort_.join_trials(step_size()));
    if (!joined) return;
    lines_.push_back(std::move(joined));
    add_offers(lines_.back().get(), false, watch_, &offers_);
  }

  std::int64_t least_bound() const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Offer& o : offers_)
      if (o.keeps_all()) least = std::min(least, o.live_peak);
    return least;
  }

  // The least peak; of several the first. Offers that keep more alive than another's peak need not be placed.
  Offer& best() {
    std::vector<Offer*> by_bound;
    for (Offer& o : offers_)
      if (o.keeps_all()) by_bound.push_back(&o);
    std::stable_sort(by_bound.begin(), by_bound.end(),
                     [](const Offer* a, const Offer* b) { return a->live_peak < b->live_peak; });
    Offer* best = nullptr;
    for (Offer* o : by_bound) {
      if (best && o->live_peak >= best->peak) break;
      if (layouts_.peak(*o); !best || o->peak < best->peak) best = o;
    }
    layouts_.searched_peak(*best);
    return *best;
  }

  std::int64_t placed_peak(const Offer& offer) {
    std::optional<PlacedOffer> placed = layouts_.take(offer);
    if (!placed) return finish_plan(offer.line->facts, graph_of(offer), offer.cost, options_, &passes_).peak_bytes;
    return finish_plan(offer.line->facts, std::move(placed->cloned), offer.cost, options_, &passes_, std::move(placed->layout))
        .peak_bytes;
  }

  const std::string rules_;
  const PlanOptions options_;
  PlanEffort effort_;
  Watch watch_;
  PassRunner passes_;
  OfferLayouts layouts_;
  std::vector<std::unique_ptr<Line>> lines_;  // the recorded order first
  std::deque<Offer> offers_;                  // a deque: references stay good
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

// Who is as good as the plan that is shown in its order needs no other.
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

void take_over(const SharingBound& from, SharingBound* to) {
  to->lower_bound_bytes = std::min(to->lower_bound_bytes, from.lower_bound_bytes);
  if (from.tight_peak_bytes >= to->tight_peak_bytes) return;
  to->tight_peak_bytes = from.tight_peak_bytes;
  to->peak_bytes = from.peak_bytes;
}

// Nobody has to use a rule: what is good with fewer is good with more.
void take_over_from_fewer(std::vector<SharingBound>* bounds) {
  for (std::size_t i = 1; i + 1 < bounds->size(); ++i) take_over(bounds->back(), &(*bounds)[i]);
  const SharingBound& all = bounds->front();
  SharingBound least = all;
  least.rules = "least found";
  for (const SharingBound& b : *bounds) take_over(b, &least);
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

std::vector<SharingBound> sharing_bounds(const Graph& captured, const PlanOptions& options, const Plan* shown) {
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
  take_over_from_fewer(&bounds);
  return bounds;
}

}  // namespace tapedeck
