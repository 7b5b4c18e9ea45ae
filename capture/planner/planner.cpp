// make_plan: every strategy offers candidates (points in its sequence of choices) in every order of nodes that is worth it,
// none of which depends on the budget; the plan is the cheapest candidate whose placed peak fits, so it is monotone in the
// budget. The floor is the least placed peak of all candidates; live bytes bound placed peaks from below, so only candidates
// near the floor need be placed to find it.
#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/plan/placement_reasons.h>
#include <tapedeck/capture/planner/candidate_layouts.h>
#include <tapedeck/capture/planner/candidates.h>
#include <tapedeck/capture/planner/effort.h>
#include <tapedeck/capture/planner/joins/join_choice.h>
#include <tapedeck/capture/planner/joins/join_orders.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/pipeline.h>

#include <tapedeck/engine/eager/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace tapedeck {

namespace {

constexpr std::int32_t kMostThreads = 4096;

void check_options(const PlanOptions& o) {
  const std::int64_t alignment = alignment_of(o);
  if (alignment <= 0 || (alignment & (alignment - 1)) != 0 || alignment > (std::int64_t{1} << 30))
    throw UsageError(fmt::format("alignment must be a power of two from 1 to 2^30, not {}", o.alignment));
  if (o.chunk_bytes < 0 || o.chunk_bytes > std::int64_t{1} << 60)
    throw UsageError(fmt::format("a chunk holds something, not {} bytes", o.chunk_bytes));
  if (o.budget < -1) throw UsageError(fmt::format("a budget cannot be negative: {}", o.budget));
  if (o.budget_percent != -1 && !(o.budget_percent >= 0 && o.budget_percent <= 1e6))
    throw UsageError(fmt::format("a budget of {} percent makes no sense", o.budget_percent));
  if (o.budget >= 0 && o.budget_percent >= 0) throw UsageError("give the budget in bytes or in percent, not both");
  if (!(o.segment_us >= 0)) throw UsageError(fmt::format("segment_us must not be negative, not {}", o.segment_us));
  if (o.threads < 1 || o.threads > kMostThreads)
    throw UsageError(fmt::format("a plan is for 1 to {} threads, not {}", kMostThreads, o.threads));
  if (!(o.dispatch_us >= 0 && o.dispatch_us <= 1e6))
    throw UsageError(fmt::format("dispatch_us of {} makes no sense", o.dispatch_us));
  if (o.place_work < -1) throw UsageError(fmt::format("place_work cannot be negative: {}", o.place_work));
  if (!(o.parallel_peak >= 1 && o.parallel_peak <= 1e6))
    throw UsageError(fmt::format("parallel_peak must be at least 1, not {}", o.parallel_peak));
}

class Planner {
 public:
  Planner(const Graph& captured, const PlanOptions& options, Looks looks)
      : options_(options),
        effort_(options),
        watch_{options.cancel, options.progress},
        passes_({}, looks),
        layouts_(options, watch_) {
    lines_.push_back(make_line("recorded", prepare(captured, &passes_, options_.sharing), options_));
  }

  Plan make() {
    watch_.check();
    if (options_.ordering == Ordering::automatic) add_least_order();
    const std::size_t orders = lines_.size();
    for (std::size_t i = 0; i < orders; ++i) add_offers_of_order(lines_[i].get());
    if (options_.ordering == Ordering::automatic && has(options_.sharing, Sharing::parts)) add_joined_order();
    if (effort_.looks_for_floor()) improve_in_turn();

    keep_all_peak_ = layouts_.searched_peak(least_peak([](const Offer& o) { return o.keeps_all(); }));
    budget_ = options_.budget;
    if (options_.budget_percent >= 0)
      budget_ = static_cast<std::int64_t>(std::floor(options_.budget_percent / 100.0 * static_cast<double>(keep_all_peak_)));
    if (effort_.looks_for_floor()) {
      floor_ = find_floor();
      layouts_.hold_floor(floor_);
    }
    return plan_offer(choose());
  }

 private:
  static constexpr int kMostRounds = 4;            // of order and recomputation improving each other
  static constexpr std::int64_t kFarBehind = 8;    // by this part of the least peak: will hardly catch up
  static constexpr std::size_t kMostSearched = 1;  // offers that may lower the floor

  StepSize step_size() const {
    const Line& recorded = *lines_.front();
    return {recorded.graph.nodes.size(), recorded.graph.values.size(), recorded.facts.keep_all_cost};
  }

  // ---- orders ----

  Line* add_line(std::string order, Graph graph) {
    lines_.push_back(make_line(std::move(order), std::move(graph), options_, lines_.front()->facts.keep_all_cost));
    return lines_.back().get();
  }

  void add_least_order() {
    NodeOrder found;
    const Line& recorded = *lines_.front();
    Graph graph = passes_.run("order", recorded.graph, [&](Graph g) {
      found = find_order(recorded.facts, g, own_sources(g), effort_.order(step_size()));
      return found.nodes.empty() ? g : reorder(g, found.nodes);
    });
    watch_.check();
    if (!found.nodes.empty()) add_line(found.name, std::move(graph))->nodes = std::move(found.nodes);
  }

  // An order that was found for values apart need not suit those that lie in what joins them.
  void add_joined_order() {
    const Line& recorded = *lines_.front();
    if (!may_share_parts(recorded.facts) || !effort_.orders_joins(step_size())) return;
    const JoinedOrder known = least_order();
    JoinedOrder found = known;
    Graph graph = passes_.run("order", recorded.graph, [&](Graph g) {
      found =
          effort_.looks_for_floor() ? find_joined_order(recorded.facts, known, effort_.order(step_size())) : improved(known);
      if (found.nodes.empty()) found.nodes = own_sources(g);
      return found.live_peak < known.live_peak ? reorder(g, found.nodes) : g;
    });
    watch_.check();
    if (found.live_peak >= known.live_peak) return;
    auto apart = make_line(found.name, std::move(graph), options_, recorded.facts.keep_all_cost);
    const PartChoice parts = move_choice(found.parts, recorded.graph, found.nodes, apart->graph);
    apart->nodes = std::move(found.nodes);
    std::unique_ptr<Line> joined = with_parts(*apart, effort_.join_trials(step_size()), parts);
    lines_.push_back(joined ? std::move(joined) : std::move(apart));
    add_offers(lines_.back().get(), effort_.looks_for_floor(), watch_, &offers_);
  }

  const Line& least_line() const {
    return *least_live([](const Offer& o) { return o.keeps_all(); }).line;
  }

  // Of those that recompute nothing.
  JoinedOrder least_order() const {
    const Line& line = least_line();
    const PartChoice parts = choice_of(line.facts.windows);
    const std::int64_t live_peak = peak_without_clones(line.facts);
    if (line.nodes.empty()) return {line.order, {}, parts, live_peak};
    return {line.order, line.nodes, move_choice_back(parts, lines_.front()->graph, line.nodes, line.graph), live_peak};
  }

  // In a hurry: another order for the same parts.
  JoinedOrder improved(JoinedOrder known) const {
    const Line& line = least_line();
    if (!line.facts.has_parts) return known;
    const NodeOrder found = find_order(line.facts, line.graph, own_sources(line.graph), effort_.order(step_size()));
    if (found.nodes.empty()) return known;
    std::vector<NodeId> nodes;
    for (NodeId n : found.nodes) nodes.push_back(line.nodes.empty() ? n : line.nodes[n]);
    return {found.name, std::move(nodes), std::move(known.parts), found.live_peak};
  }

  void add_offers_of_order(Line* line) {
    add_offers(line, effort_.looks_for_floor(), watch_, &offers_);
    if (!has(options_.sharing, Sharing::parts)) return;
    if (std::unique_ptr<Line> joined = with_parts(*line, effort_.join_trials(step_size()))) {
      lines_.push_back(std::move(joined));
      add_offers(lines_.back().get(), effort_.looks_for_floor(), watch_, &offers_);
    }
  }

  // The offer with its nodes moved to where they keep the fewest bytes alive: clones need not run just before their readers.
  // Empty if that wins nothing, or if others are far ahead.
  std::optional<Offer> move_nodes(const Offer& offer) {
    if (options_.ordering != Ordering::automatic || offer.keeps_all() || !offer.moved.empty()) return std::nullopt;
    const ClonedGraph cloned = graph_of(offer);
    NodeOrder found = find_order(offer.line->facts, cloned.graph, cloned.source, effort_.order(step_size()));
    watch_.check();
    if (found.nodes.empty()) return std::nullopt;
    Offer moved = offer;
    moved.live_peak = offer.line->facts.external_bytes + found.live_peak;
    moved.peak = -1;
    moved.number = offers_.size();
    moved.moved = std::move(found.nodes);
    const std::int64_t least = least_live([](const Offer&) { return true; }).live_peak;
    if (moved.live_peak >= offer.live_peak || moved.live_peak - least > least / kFarBehind) return std::nullopt;
    return moved;
  }

  // Order and recomputation call each other: the offer of a line that keeps the fewest bytes gets an order of its own, and in
  // that order (of the nodes that are no clones) there may be more to give up. Which line leads furthest does not show before.
  // No look at the budget, so a larger one never costs more.
  void improve_in_turn() {
    std::vector<Line*> starts;
    for (const auto& line : lines_)
      if (!line->facts.has_parts) starts.push_back(line.get());
    for (Line* line : starts) improve_in_turn(line);
  }

  void improve_in_turn(Line* line) {
    for (int round = 0; line && round < kMostRounds; ++round) line = improve_once(*line);
  }

  // The line that came of it; null if nothing did, or if it offers nothing more.
  Line* improve_once(const Line& line) {
    std::optional<Offer> found = move_nodes(least_live([&](const Offer& o) { return o.line == &line; }));
    if (!found) return nullptr;
    offers_.push_back(std::move(*found));
    const Offer& moved = offers_.back();
    const ClonedGraph cloned = graph_of(moved);
    // In a line of their own, forward nodes made in backward would be forward's again, in the middle of backward.
    const bool any_late = std::find(cloned.late.begin(), cloned.late.end(), 1) != cloned.late.end();
    if (options_.split_phases && any_late) return nullptr;
    Line* next = add_line("searched", without_clones(line, cloned));
    add_offers_of_order(next);
    return least_live([&](const Offer& o) { return o.line == next; }).live_peak < moved.live_peak ? next : nullptr;
  }

  // ---- choosing ----

  // Of the offers that are allowed, the first that keeps the fewest bytes alive, before anything is placed.
  template <class Allowed>
  const Offer& least_live(Allowed allowed) const {
    const Offer* least = nullptr;
    for (const Offer& o : offers_)
      if (allowed(o) && (!least || o.live_peak < least->live_peak)) least = &o;
    return *least;
  }

  // Of the offers that are allowed, the one with the least placed peak; the cheapest of those, and the first of these.
  template <class Allowed>
  Offer& least_peak(Allowed allowed) {
    std::vector<Offer*> by_bound;
    for (Offer& o : offers_)
      if (allowed(o)) by_bound.push_back(&o);
    std::stable_sort(by_bound.begin(), by_bound.end(),
                     [](const Offer* a, const Offer* b) { return a->live_peak < b->live_peak; });
    Offer* best = nullptr;
    for (Offer* o : by_bound) {
      if (best && o->live_peak > best->peak) break;
      if (!best || before(*o, *best)) best = o;
      layouts_.peak(*best);
    }
    return *best;
  }

  // Greedy placement may leave the offer that keeps the fewest bytes alive above others, so that a few of those are searched,
  // too.
  std::int64_t find_floor() {
    std::int64_t floor = layouts_.searched_peak(least_peak([](const Offer&) { return true; }));
    std::vector<Offer*> lowest;
    for (Offer& o : offers_)
      if (o.live_peak < floor) lowest.push_back(&o);
    std::stable_sort(lowest.begin(), lowest.end(), [](const Offer* a, const Offer* b) { return a->live_peak < b->live_peak; });
    for (std::size_t i = 0; i < lowest.size() && i < kMostSearched && lowest[i]->live_peak < floor; ++i)
      floor = std::min(floor, layouts_.searched_peak(*lowest[i]));
    return floor;
  }

  bool before(Offer& a, Offer& b) {
    if (layouts_.peak(a) != layouts_.peak(b)) return layouts_.peak(a) < layouts_.peak(b);
    return a.cost != b.cost ? a.cost < b.cost : a.number < b.number;
  }

  template <class Allowed>
  Offer* cheapest_that_fits(Allowed allowed) {
    std::vector<Offer*> by_cost;
    for (Offer& o : offers_)
      if (allowed(o) && o.live_peak <= budget_) by_cost.push_back(&o);
    std::stable_sort(by_cost.begin(), by_cost.end(), [](const Offer* a, const Offer* b) { return a->cost < b->cost; });
    Offer* best = nullptr;
    for (Offer* o : by_cost) {
      if (best && o->cost > best->cost) break;
      if (layouts_.peak(*o) <= budget_ && (!best || is_plainer(*o, *best))) best = o;
    }
    return best;
  }

  // Of two that cost the same. Nothing is recomputed for its own sake, even where it costs nothing.
  bool is_plainer(Offer& a, Offer& b) { return a.keeps_all() != b.keeps_all() ? a.keeps_all() : before(a, b); }

  // Which offers the asked strategy may take.
  bool allows(const Offer& o) const {
    switch (options_.strategy) {
      case Strategy::none:
        return o.keeps_all();
      case Strategy::greedy:
        return o.strategy == Strategy::greedy;
      case Strategy::automatic:
        return budget_ >= 0 || wanted_without_budget(o);
      case Strategy::regions:
        return wanted_without_budget(o);
    }
    return false;
  }

  // The user's regions if there are any to honour, else keep all.
  static bool wanted_without_budget(const Offer& o) {
    return o.line->has_regions ? o.strategy == Strategy::regions : o.keeps_all();
  }

  Offer& choose() {
    const auto allowed = [&](const Offer& o) { return allows(o); };
    if (budget_ < 0)
      return least_peak([&](const Offer& o) { return allowed(o) && (o.strategy == Strategy::regions || o.keeps_all()); });
    Offer* fits = cheapest_that_fits(allowed);
    return fits ? *fits : least_peak(allowed);
  }

  Plan plan_offer(Offer& offer) {
    PlanOptions options = options_;
    options.budget = budget_;
    options.budget_percent = -1;
    layouts_.searched_peak(offer);
    layouts_.keep_addresses(offer, budget_);
    std::optional<PlacedOffer> placed = layouts_.take(offer);
    Plan plan = placed ? finish_plan(offer.line->facts, std::move(placed->cloned), offer.cost, options, &passes_,
                                     std::move(placed->layout))
                       : finish_plan(offer.line->facts, graph_of(offer), offer.cost, options, &passes_);
    plan.strategy = strategy_name(named_strategy(offer));
    plan.order = offer.moved.empty() ? offer.line->order : "searched";
    plan.budget_bytes = budget_;
    plan.floor_bytes = floor_ < 0
                           ? plan.peak_bytes
                           : std::min(floor_, plan.peak_bytes);  // placed for several threads, a plan may get by with less
    plan.keep_all_peak_bytes = keep_all_peak_;
    plan.decisions.assign(offer.choices->decisions.begin(), offer.choices->decisions.begin() + offer.candidate.decisions);
    plan.feasible = budget_ < 0 || plan.peak_bytes <= budget_;
    if (!plan.feasible) plan.infeasible_reason = why_infeasible(plan);
    watch_.report(1.0);
    return plan;
  }

  Strategy named_strategy(const Offer& offer) const {
    if (options_.strategy != Strategy::automatic) return options_.strategy;
    return budget_ < 0 ? Strategy::regions : offer.strategy;
  }

  std::string why_infeasible(const Plan& plan) const {
    std::string text = fmt::format("a budget of {} bytes cannot be met: ", budget_);
    if (plan.peak_bytes > floor_) text += fmt::format("strategy {} needs {} bytes, ", plan.strategy, plan.peak_bytes);
    return text + fmt::format("the floor is {} bytes; {}", floor_, describe_peak(plan));
  }

  const PlanOptions& options_;
  PlanEffort effort_;
  Watch watch_;
  PassRunner passes_;
  OfferLayouts layouts_;
  std::vector<std::unique_ptr<Line>> lines_;  // the recorded order first
  std::deque<Offer> offers_;                  // a deque: references stay good
  std::int64_t keep_all_peak_ = 0, floor_ = -1, budget_ = -1;
};

// Always where assertions are on; else when asked.
bool checks_plans() {
#ifndef NDEBUG
  return true;
#else
  const Settings now = settings_from_environment();
  return now.check_plans || now.debug >= 2;
#endif
}

// What has been proven of the captured graph the passes must not have broken. It takes as long as some of them, so one look is
// had at the end; if it is not good, another planning finds the pass that is to blame.
Plan plan_and_verify(const Graph& graph, const PlanOptions& options) {
  if (checks_plans()) return Planner(graph, options, Looks::at_each).make();
  Plan plan = Planner(graph, options, Looks::at_none).make();
  try {
    verify(plan.graph);
  } catch (const InvalidGraphError&) {
    Planner(graph, options, Looks::at_each).make();
    throw;
  }
  return plan;
}

// Passes leave out an update where they find that its value is the state itself.
std::vector<std::string> unchanged_state(const Graph& captured, const Graph& planned) {
  std::vector<std::string> names;
  for (const Update& u : captured.updates) {
    const bool stored = std::any_of(planned.updates.begin(), planned.updates.end(),
                                    [&](const Update& other) { return other.state == u.state; });
    if (!stored) names.push_back(captured.value_name(u.state));
  }
  return names;
}

// Clones that were captured so are not the planner's.
void throw_if_broken(const Graph& captured, const Plan& plan) {
  std::vector<std::string> violations = check_plan(plan);
  if (violations.empty() &&
      std::none_of(captured.nodes.begin(), captured.nodes.end(), [](const Node& n) { return n.origin.clone; }))
    violations = check_clones(plan);
  if (!violations.empty())
    throw InvalidGraphError(fmt::format("the planner made a plan that breaks its rules: {}", fmt::join(violations, "; ")));
}

}  // namespace

Plan make_plan(const Graph& graph, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  Plan plan = plan_and_verify(graph, options);
  plan.unchanged_state = unchanged_state(graph, plan.graph);
  plan.solve_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (checks_plans()) throw_if_broken(graph, plan);
  return plan;
}

}  // namespace tapedeck
