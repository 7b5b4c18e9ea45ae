// make_plan: every strategy offers candidates (points in its sequence of choices) in every order of nodes that is worth it, none of which
// depends on the budget; the plan is the cheapest candidate whose placed peak fits, so it is monotone in the budget. The floor is the least
// placed peak of all candidates; live bytes bound placed peaks from below, so only candidates near the floor need be placed to find it.
#include <tapedeck/capture/planner.h>

#include <tapedeck/capture/join_choice.h>
#include <tapedeck/capture/order/order.h>
#include <tapedeck/capture/pipeline.h>
#include <tapedeck/capture/place/place.h>
#include <tapedeck/capture/plan_check.h>
#include <tapedeck/capture/reasons.h>

#include <tapedeck/engine/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace tapedeck {

const char* strategy_name(Strategy strategy) {
  constexpr const char* names[] = {"none", "regions", "greedy", "auto"};
  return names[static_cast<int>(strategy)];
}

std::int64_t default_alignment(DeviceType device) { return device == DeviceType::cuda ? 256 : 64; }
std::int64_t alignment_of(const PlanOptions& options) { return options.alignment == -1 ? default_alignment(options.device) : options.alignment; }

bool parse_strategy(std::string_view text, Strategy* strategy) {
  for (Strategy s : {Strategy::none, Strategy::regions, Strategy::greedy, Strategy::automatic}) {
    if (text != strategy_name(s)) continue;
    *strategy = s;
    return true;
  }
  return false;
}

namespace {

constexpr std::int32_t kMostThreads = 4096;

void check_options(const PlanOptions& o) {
  const std::int64_t alignment = alignment_of(o);
  if (alignment <= 0 || (alignment & (alignment - 1)) != 0 || alignment > (std::int64_t{1} << 30))
    throw UsageError(fmt::format("alignment must be a power of two from 1 to 2^30, not {}", o.alignment));
  if (o.chunk_bytes < 0 || o.chunk_bytes > std::int64_t{1} << 60) throw UsageError(fmt::format("a chunk holds something, not {} bytes", o.chunk_bytes));
  if (o.budget < -1) throw UsageError(fmt::format("a budget cannot be negative: {}", o.budget));
  if (o.budget_percent != -1 && !(o.budget_percent >= 0 && o.budget_percent <= 1e6))
    throw UsageError(fmt::format("a budget of {} percent makes no sense", o.budget_percent));
  if (o.budget >= 0 && o.budget_percent >= 0) throw UsageError("give the budget in bytes or in percent, not both");
  if (!(o.segment_us >= 0)) throw UsageError(fmt::format("segment_us must not be negative, not {}", o.segment_us));
  if (o.threads < 1 || o.threads > kMostThreads) throw UsageError(fmt::format("a plan is for 1 to {} threads, not {}", kMostThreads, o.threads));
  if (!(o.dispatch_us >= 0 && o.dispatch_us <= 1e6)) throw UsageError(fmt::format("dispatch_us of {} makes no sense", o.dispatch_us));
  if (o.place_work < -1) throw UsageError(fmt::format("place_work cannot be negative: {}", o.place_work));
  if (!(o.parallel_peak >= 1 && o.parallel_peak <= 1e6)) throw UsageError(fmt::format("parallel_peak must be at least 1, not {}", o.parallel_peak));
}

// An order of the graph's nodes, and what the strategies choose in it.
struct Line {
  std::string order = "recorded";  // Plan::order
  Graph graph;
  Facts facts;
  Choices regions, greedy;
  bool has_regions = false;        // there is something to honour
};

// A candidate of any strategy, placed when first asked.
struct Offer {
  Strategy strategy = Strategy::none;
  const Line* line = nullptr;
  const Choices* choices = nullptr;
  Candidate candidate;
  double cost = 0;
  std::int64_t live_peak = 0;  // a bound on `peak`
  std::int64_t peak = -1;      // -1: not placed yet
  std::size_t number = 0;      // ties go to the first
  bool searched = false;       // for offsets, beyond greedy placement
  std::vector<NodeId> moved = {};  // its nodes, clones included, in another order; empty: in the line's
};

// The layout of an offer. That of the lowest peak so far is kept: it is often the one that is taken.
struct PlacedOffer {
  std::size_t number = 0;
  std::int64_t peak = 0;
  ClonedGraph cloned;
  Layout layout;
};

class Planner {
 public:
  Planner(const Graph& captured, const PlanOptions& options, Looks looks)
      : options_(options), watch_{options.cancel, options.progress}, passes_({}, looks) {
    Graph graph = prepare(captured, &passes_, options_.sharing);
    add_line("recorded", std::move(graph));
  }

  Plan make() {
    watch_.check();
    if (options_.ordering == Ordering::automatic) add_least_order();
    const std::size_t orders = lines_.size();
    for (std::size_t i = 0; i < orders; ++i) add_offers_of_order(lines_[i].get());
    if (looks_for_floor()) improve_in_turn();

    keep_all_peak_ = searched_peak(least_peak([](const Offer& o) { return o.candidate.journal == 0; }));
    budget_ = options_.budget;
    if (options_.budget_percent >= 0)
      budget_ = static_cast<std::int64_t>(std::floor(options_.budget_percent / 100.0 * static_cast<double>(keep_all_peak_)));
    if (looks_for_floor()) floor_ = searched_peak(least_peak([](const Offer&) { return true; }));
    return plan_offer(choose());
  }

 private:
  static constexpr std::int64_t kNearMayCost = 50;   // the peak by this, where no budget says what it may cost
  static constexpr int kMostRounds = 4;  // of order and recomputation improving each other
  static constexpr int kRetries = 12;    // of greedy placement where nobody waits for more

  bool has_budget() const { return options_.budget >= 0 || options_.budget_percent >= 0; }
  bool looks_for_floor() const { return options_.find_floor || has_budget() || options_.strategy == Strategy::greedy; }

  // ---- orders ----

  Line* add_line(std::string order, Graph graph) {
    lines_.push_back(std::make_unique<Line>());
    Line& line = *lines_.back();
    line.order = std::move(order);
    line.graph = std::move(graph);
    line.facts = collect_facts(line.graph, options_.costs.get(), options_.sharing & ~Sharing::parts);
    line.facts.keep_all_cost = lines_.front()->facts.keep_all_cost;  // the same nodes: no other sum for the order of its terms
    return &line;
  }

  // The same order with parts in what joins them (analysis/parts.h). They cannot be made again, so that both have something to offer.
  Line* add_line_with_parts(const Line& apart) {
    if (!has(options_.sharing, Sharing::parts)) return nullptr;
    if (!may_share_parts(apart.facts)) return nullptr;
    auto line = std::make_unique<Line>();
    line->facts = apart.facts;
    share_parts(Readers(apart.graph), &line->facts, join_trials(apart));
    if (!line->facts.has_parts) return nullptr;
    line->order = apart.order;
    line->graph = apart.graph;
    line->facts.graph = &line->graph;
    line->facts.keep_all_cost = apart.facts.keep_all_cost - saved_by_parts(apart.facts, line->facts);
    lines_.push_back(std::move(line));
    return lines_.back().get();
  }

  // Summed by size, so that equal copies saved are equal costs in every order.
  static double saved_by_parts(const Facts& apart, const Facts& joined) {
    std::vector<double> saved;
    for (std::size_t n = 0; n < apart.cost.size(); ++n)
      if (apart.cost[n] != joined.cost[n]) saved.push_back(apart.cost[n] - joined.cost[n]);
    std::sort(saved.begin(), saved.end());
    return std::accumulate(saved.begin(), saved.end(), 0.0);
  }

  // Who waits for the plan of a step waits for no more than a hundredth of the step while orders are searched, and as long while joins are tried.
  static constexpr std::int64_t kLeastOrderWork = 60'000;
  static constexpr double kUsOfLookUp = 0.015;

  int join_trials(const Line& line) const {
    constexpr double kUsOfNode = 0.4;   // in one trial
    if (looks_for_floor()) return kMostTrials;
    const double trials = 0.01 * line.facts.keep_all_cost / (kUsOfNode * static_cast<double>(std::max<std::size_t>(line.graph.nodes.size(), 1)));
    return std::clamp(static_cast<int>(std::min(trials, 1e6)), 1, kMostTrials);
  }

  OrderOptions order_options() const {
    OrderOptions how;
    how.split_phases = options_.split_phases;
    how.cancel = options_.cancel;
    if (looks_for_floor()) return how;
    const auto n = static_cast<std::int64_t>(lines_.front()->graph.nodes.size());
    how.most_work = std::max(std::min(kLeastOrderWork, n * n), static_cast<std::int64_t>(0.01 * lines_.front()->facts.keep_all_cost / kUsOfLookUp));
    return how;
  }

  void add_least_order() {
    NodeOrder found;
    const Line& recorded = *lines_.front();
    Graph graph = passes_.run("order", recorded.graph, [&](Graph g) {
      const std::vector<NodeId> source = own_sources(g);
      found = find_order(recorded.facts, g, source, order_options());
      return found.nodes.empty() ? g : reorder(g, found.nodes);
    });
    watch_.check();
    if (!found.nodes.empty()) add_line(found.name, std::move(graph));
  }

  // The offer with its nodes moved to where they keep the fewest bytes alive: clones need not run just before their readers. Empty if that
  // wins nothing.
  std::optional<Offer> move_nodes(const Offer& offer) {
    if (options_.ordering != Ordering::automatic || offer.candidate.journal == 0 || !offer.moved.empty()) return std::nullopt;
    const ClonedGraph cloned = graph_of(offer);
    NodeOrder found = find_order(offer.line->facts, cloned.graph, cloned.source, order_options());
    watch_.check();
    if (found.nodes.empty()) return std::nullopt;
    Offer moved = offer;
    moved.live_peak = offer.line->facts.external_bytes + found.live_peak;
    moved.peak = -1;
    moved.number = offers_.size();
    moved.moved = std::move(found.nodes);
    if (peak(moved) >= offer.peak) return std::nullopt;
    return moved;
  }

  // Order and recomputation call each other: the offer that keeps the fewest bytes gets an order of its own, and in that order (of the nodes
  // that are no clones) there may be more to give up. No look at the budget, so a larger one never costs more.
  void improve_in_turn() {
    for (int round = 0; round < kMostRounds; ++round) {
      Offer& least = least_peak([](const Offer& o) { return !o.line->facts.has_parts; });
      std::optional<Offer> moved = move_nodes(least);
      if (!moved) return;
      const ClonedGraph cloned = graph_of(*moved);
      offers_.push_back(std::move(*moved));
      add_offers_of_order(add_line("searched", without_clones(*offers_.back().line, cloned)));
    }
  }

  // The graph's own nodes in the order in which they stand among clones.
  static Graph without_clones(const Line& line, const ClonedGraph& cloned) {
    std::vector<char> seen(line.graph.nodes.size(), 0);
    std::vector<NodeId> nodes;
    for (NodeId source : cloned.source)
      if (!std::exchange(seen[source], 1)) nodes.push_back(source);
    return reorder(line.graph, nodes);
  }

  // ---- offers ----

  void add_offers_of_order(Line* line) {
    add_offers(line);
    if (Line* joined = add_line_with_parts(*line)) add_offers(joined);
  }

  void add_offers(Line* line) {
    line->regions = choose_regions(line->facts);
    line->has_regions = line->regions.candidates.back().journal > 0;
    if (looks_for_floor()) line->greedy = choose_greedily(line->facts, watch_);
    add_offers(Strategy::greedy, *line, looks_for_floor() ? line->greedy : line->regions, 0, looks_for_floor() ? ~std::size_t{0} : 1);
    if (line->has_regions) add_offers(Strategy::regions, *line, line->regions, 1);
  }

  // Of the candidates first..last-1. The first of all keeps all.
  void add_offers(Strategy strategy, const Line& line, const Choices& choices, std::size_t first, std::size_t last = ~std::size_t{0}) {
    CloneLists clones(line.graph.nodes.size());
    std::size_t done = 0;
    for (std::size_t i = first; i < std::min(last, choices.candidates.size()); ++i) {
      const Candidate& candidate = choices.candidates[i];
      apply_steps(choices.journal, done, candidate.journal, &clones);
      done = candidate.journal;
      offers_.push_back({strategy, &line, &choices, candidate, schedule_cost(line.facts, clones), line.facts.external_bytes + candidate.live_peak, -1, offers_.size()});
    }
  }

  std::int64_t peak(Offer& offer) {
    if (offer.peak < 0) {
      watch_.check();
      PlacedOffer placed{offer.number, 0, graph_of(offer), {}};
      placed.layout = lay_out(offer.line->facts, placed.cloned, placing(offer));
      placed.peak = offer.peak = offer.line->facts.external_bytes + placed.layout.arena_bytes;
      if (!lowest_ || offer.peak < lowest_->peak) lowest_ = std::move(placed);
    }
    return offer.peak;
  }

  // Which offers are searched does not depend on the budget, but for the one that is taken: that only makes its peak lower.
  std::int64_t searched_peak(Offer& offer) {
    if (std::exchange(offer.searched, true)) return offer.peak;
    if (peak(offer) <= offer.live_peak) return offer.peak;
    const bool known = lowest_ && lowest_->number == offer.number;
    PlacedOffer placed{offer.number, 0, known ? std::move(lowest_->cloned) : graph_of(offer), {}};
    Layout greedy = known ? std::move(lowest_->layout) : lay_out(offer.line->facts, placed.cloned, placing(offer));
    placed.layout = lay_out(offer.line->facts, placed.cloned, searching(offer, greedy));
    watch_.check();
    placed.peak = offer.line->facts.external_bytes + placed.layout.arena_bytes;
    const bool beats_the_floor = floor_ >= 0 && placed.peak < floor_;  // the floor is one number, whatever the budget
    if (placed.peak > offer.peak || beats_the_floor) {
      placed.layout = std::move(greedy);
      placed.peak = offer.peak;
    }
    offer.peak = placed.peak;
    kept_[offer.number] = std::move(placed);
    if (known) lowest_.reset();
    return offer.peak;
  }

  // What alignment may cost is not worth waiting for where nobody asked for a floor.
  std::int64_t slack() const { return looks_for_floor() || options_.place_work >= 0 ? 0 : alignment_of(options_); }

  // Greedy placement alone.
  Placing placing(const Offer& offer) const {
    Placing how;
    how.alignment = alignment_of(options_);
    how.chunk_bytes = options_.chunk_bytes;
    how.slack = slack();
    how.first_fit_only = is_hurried(offer);
    return how;
  }

  Placing searching(const Offer& offer, const Layout& start) const {
    Placing how = placing(offer);
    how.work = place_work(offer);
    how.start = &start;
    how.cancel = options_.cancel;
    how.retries = slack() > 0 ? kRetries : 0;
    return how;
  }

  // Ten greedy attempts take ten microseconds or so for each buffer; best fit, which half of them are, seldom wins.
  bool is_hurried(const Offer& offer) const {
    return slack() > 0 && 10.0 * static_cast<double>(offer.line->graph.nodes.size()) > 0.01 * offer.line->facts.keep_all_cost;
  }

  // A second of search at most; of small graphs, of which a program may have many, little. Who waits for the plan of a step that is over in a
  // millisecond wants no search at all: a fiftieth of the step it may take.
  std::int64_t place_work(const Offer& offer) const {
    if (options_.place_work >= 0) return options_.place_work;
    const double n = std::max(static_cast<double>(offer.line->graph.values.size()), 10.0);
    double us = 1e6;
    if (!looks_for_floor()) us = std::min(us, 0.02 * offer.line->facts.keep_all_cost);
    return std::min(place_steps(us, offer.line->graph.values.size()), static_cast<std::int64_t>(std::min(200'000.0, n * n * n * n / 30'000)));
  }

  ClonedGraph graph_of(const Offer& offer) const {
    ClonedGraph cloned = clone_graph(offer.line->facts, clones_after(offer.line->facts, offer.choices->journal, offer.candidate.journal));
    return offer.moved.empty() ? cloned : reorder(cloned, offer.moved);
  }

  // Of the offers that are allowed, the one with the least placed peak; the cheapest of those, and the first of these.
  template <class Allowed>
  Offer& least_peak(Allowed allowed) {
    std::vector<Offer*> by_bound;
    for (Offer& o : offers_)
      if (allowed(o)) by_bound.push_back(&o);
    std::stable_sort(by_bound.begin(), by_bound.end(), [](const Offer* a, const Offer* b) { return a->live_peak < b->live_peak; });
    Offer* best = nullptr;
    for (Offer* o : by_bound) {
      if (best && o->live_peak > best->peak) break;
      if (!best || before(*o, *best)) best = o;
      peak(*best);
    }
    return *best;
  }

  bool before(Offer& a, Offer& b) {
    if (peak(a) != peak(b)) return peak(a) < peak(b);
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
      if (peak(*o) <= budget_ && (!best || is_plainer(*o, *best))) best = o;
    }
    return best;
  }

  // Of two that cost the same. Nothing is recomputed for its own sake, even where it costs nothing.
  bool is_plainer(Offer& a, Offer& b) {
    const bool a_keeps_all = a.candidate.journal == 0, b_keeps_all = b.candidate.journal == 0;
    return a_keeps_all != b_keeps_all ? a_keeps_all : before(a, b);
  }

  // Which offers the asked strategy may take.
  bool allows(const Offer& o) const {
    const bool keep_all = o.candidate.journal == 0;
    switch (options_.strategy) {
      case Strategy::none:
        return keep_all;
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
    return o.line->has_regions ? o.strategy == Strategy::regions : o.candidate.journal == 0;
  }

  Offer& choose() {
    const auto allowed = [&](const Offer& o) { return allows(o); };
    if (budget_ < 0) return least_peak([&](const Offer& o) { return allowed(o) && (o.strategy == Strategy::regions || o.candidate.journal == 0); });
    Offer* fits = cheapest_that_fits(allowed);
    return fits ? *fits : least_peak(allowed);
  }

  Plan plan_offer(Offer& offer) {
    PlanOptions options = options_;
    options.budget = budget_;
    options.budget_percent = -1;
    searched_peak(offer);
    keep_addresses(offer);
    const auto kept = kept_.find(offer.number);
    PlacedOffer* known = kept != kept_.end() ? &kept->second : lowest_ && lowest_->number == offer.number ? &*lowest_ : nullptr;
    Plan plan = known ? finish_plan(offer.line->facts, std::move(known->cloned), offer.cost, options, &passes_, std::move(known->layout))
                      : finish_plan(offer.line->facts, graph_of(offer), offer.cost, options, &passes_);
    plan.strategy = strategy_name(named_strategy(offer));
    plan.order = offer.moved.empty() ? offer.line->order : "searched";
    plan.budget_bytes = budget_;
    plan.floor_bytes = floor_ < 0 ? plan.peak_bytes : std::min(floor_, plan.peak_bytes);  // placed for several threads, a plan may get by with less
    plan.keep_all_peak_bytes = keep_all_peak_;
    plan.decisions.assign(offer.choices->decisions.begin(), offer.choices->decisions.begin() + offer.candidate.decisions);
    plan.feasible = budget_ < 0 || plan.peak_bytes <= budget_;
    if (!plan.feasible) plan.infeasible_reason = why_infeasible(plan);
    watch_.report(1.0);
    return plan;
  }

  // PlanOptions::near, of the offer that is taken alone, so that it changes no choice.
  void keep_addresses(Offer& offer) {
    if (!options_.near || options_.chunk_bytes > 0) return;
    PlacedOffer placed{offer.number, 0, graph_of(offer), {}};
    Placing how = placing(offer);
    how.near = options_.near.get();
    how.cancel = options_.cancel;
    placed.layout = lay_out(offer.line->facts, placed.cloned, how);
    placed.peak = offer.line->facts.external_bytes + placed.layout.arena_bytes;
    const bool beats_the_floor = floor_ >= 0 && placed.peak < floor_;
    const bool costs_too_much = placed.peak > (budget_ < 0 ? offer.peak + offer.peak / kNearMayCost : std::max(budget_, offer.peak));
    if (!placed.layout.near || beats_the_floor || costs_too_much) return;
    offer.peak = placed.peak;
    kept_[offer.number] = std::move(placed);
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
  Watch watch_;
  PassRunner passes_;
  std::vector<std::unique_ptr<Line>> lines_;  // the recorded order first
  std::optional<PlacedOffer> lowest_;
  std::map<std::size_t, PlacedOffer> kept_;   // those searched, by number
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

// What has been proven of the captured graph the passes must not have broken. It takes as long as some of them, so one look is had at the end;
// if it is not good, another planning finds the pass that is to blame.
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

}  // namespace

Plan make_plan(const Graph& graph, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  Plan plan = plan_and_verify(graph, options);
  plan.solve_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (checks_plans())
    if (const std::vector<std::string> violations = check_plan(plan); !violations.empty())
      throw InvalidGraphError(fmt::format("the planner made a plan that breaks its rules: {}", fmt::join(violations, "; ")));
  return plan;
}

}  // namespace tapedeck
