#include <tapedeck/capture/sharing_bounds.h>

#include <tapedeck/capture/offer_layouts.h>
#include <tapedeck/capture/order/like.h>
#include <tapedeck/capture/order/order.h>
#include <tapedeck/capture/pipeline.h>
#include <tapedeck/capture/plan_offers.h>

#include <algorithm>
#include <deque>
#include <iterator>
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
      : rules_(std::move(rules)), options_(with_rules(options, sharing)), effort_(options_), watch_{options_.cancel, {}}, passes_({}, Looks::at_none),
        layouts_(options_, watch_) {
    watch_.check();
    add(make_line("recorded", prepare(captured, &passes_, sharing), options_));
  }
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  void search_order() {
    const Line& recorded = *lines_.front();
    NodeOrder found = find_order(recorded.facts, recorded.graph, own_sources(recorded.graph), effort_.order(step_size()));
    watch_.check();
    if (!found.nodes.empty()) try_order(found.nodes);
  }

  void try_order_of(const Graph& like) { try_order(order_like(lines_.front()->facts, like, options_.split_phases)); }

  const Graph& best_graph() { return best().line->graph; }

  SharingBound result() {
    Offer& offer = best();
    layouts_.searched_peak(offer);
    std::optional<PlacedOffer> placed = layouts_.take(offer);
    ClonedGraph graph = placed ? std::move(placed->cloned) : graph_of(offer);
    std::optional<Layout> layout;
    if (placed) layout = std::move(placed->layout);
    const Plan plan = finish_plan(offer.line->facts, std::move(graph), offer.cost, options_, &passes_, std::move(layout));
    return {rules_, options_.sharing, plan.lower_bound_bytes, plan.peak_bytes};
  }

 private:
  StepSize step_size() const {
    const Line& recorded = *lines_.front();
    return {recorded.graph.nodes.size(), recorded.graph.values.size(), recorded.facts.keep_all_cost};
  }

  void try_order(const std::vector<NodeId>& nodes) {
    watch_.check();
    add(make_line("searched", reorder(lines_.front()->graph, nodes), options_, lines_.front()->facts.keep_all_cost));
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

  // The least peak; of several the first. Offers that keep more alive than another's peak need not be placed.
  Offer& best() {
    std::vector<Offer*> by_bound;
    for (Offer& o : offers_)
      if (o.keeps_all()) by_bound.push_back(&o);
    std::stable_sort(by_bound.begin(), by_bound.end(), [](const Offer* a, const Offer* b) { return a->live_peak < b->live_peak; });
    Offer* best = nullptr;
    for (Offer* o : by_bound) {
      if (best && o->live_peak >= best->peak) break;
      if (!best || layouts_.peak(*o) < best->peak) best = o;
      layouts_.searched_peak(*best);
    }
    return *best;
  }

  const std::string rules_;
  const PlanOptions options_;
  PlanEffort effort_;
  Watch watch_;
  PassRunner passes_;
  OfferLayouts layouts_;
  std::vector<std::unique_ptr<Line>> lines_;   // the recorded order first
  std::deque<Offer> offers_;                   // a deque: references stay good
};

std::deque<RuleSet> fewer_rules(const Graph& captured, const PlanOptions& options) {
  std::deque<RuleSet> sets;
  for (Sharing rule : kRules)
    if (has(options.sharing, rule)) sets.emplace_back(std::string("without ") + sharing_name(rule), options.sharing & ~rule, captured, options);
  sets.emplace_back("none", Sharing::none, captured, options);
  return sets;
}

void exchange_orders(const Graph& shown, std::deque<RuleSet>* sets) {
  for (RuleSet& s : *sets) s.search_order();
  std::vector<Graph> found = {shown};
  for (RuleSet& s : *sets) found.push_back(s.best_graph());
  for (std::size_t i = 0; i < sets->size(); ++i)
    for (std::size_t k = 0; k < found.size(); ++k)
      if (k != i + 1) (*sets)[i].try_order_of(found[k]);
}

// Nobody has to use a rule: what is good without any is good with some.
void take_over_from_none(std::vector<SharingBound>* bounds) {
  const SharingBound& none = bounds->back();
  for (std::size_t i = 1; i + 1 < bounds->size(); ++i) {
    SharingBound& b = (*bounds)[i];
    if (b.peak_bytes <= none.peak_bytes) continue;
    b.peak_bytes = none.peak_bytes;
    b.lower_bound_bytes = none.lower_bound_bytes;
  }
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
  std::vector<SharingBound> bounds = {{"all", options.sharing, shown->lower_bound_bytes, shown->peak_bytes}};
  std::deque<RuleSet> sets = fewer_rules(captured, how);
  if (how.ordering == Ordering::automatic) exchange_orders(shown->graph, &sets);
  for (RuleSet& s : sets) bounds.push_back(s.result());
  take_over_from_none(&bounds);
  return bounds;
}

}  // namespace tapedeck
