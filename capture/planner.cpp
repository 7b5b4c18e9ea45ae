// make_plan: every strategy offers candidates (points in its sequence of choices), none of which depends on the budget; the
// plan is the cheapest candidate whose placed peak fits, so it is monotone in the budget. The floor is the least placed peak of
// all candidates; live bytes bound placed peaks from below, so only candidates near the floor need be placed to find it.
#include <tapedeck/capture/planner.h>

#include <tapedeck/capture/pipeline.h>
#include <tapedeck/capture/plan_check.h>
#include <tapedeck/capture/reasons.h>

#include <tapedeck/engine/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tapedeck {

const char* strategy_name(Strategy strategy) {
  constexpr const char* names[] = {"none", "regions", "greedy", "auto"};
  return names[static_cast<int>(strategy)];
}

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
  if (o.alignment <= 0 || (o.alignment & (o.alignment - 1)) != 0 || o.alignment > (std::int64_t{1} << 30))
    throw UsageError(fmt::format("alignment must be a power of two from 1 to 2^30, not {}", o.alignment));
  if (o.budget < -1) throw UsageError(fmt::format("a budget cannot be negative: {}", o.budget));
  if (o.budget_percent != -1 && !(o.budget_percent >= 0 && o.budget_percent <= 1e6))
    throw UsageError(fmt::format("a budget of {} percent makes no sense", o.budget_percent));
  if (o.budget >= 0 && o.budget_percent >= 0) throw UsageError("give the budget in bytes or in percent, not both");
  if (!(o.segment_us >= 0)) throw UsageError(fmt::format("segment_us must not be negative, not {}", o.segment_us));
  if (o.threads < 1 || o.threads > kMostThreads) throw UsageError(fmt::format("a plan is for 1 to {} threads, not {}", kMostThreads, o.threads));
  if (!(o.dispatch_us >= 0 && o.dispatch_us <= 1e6)) throw UsageError(fmt::format("dispatch_us of {} makes no sense", o.dispatch_us));
  if (!(o.parallel_peak >= 1 && o.parallel_peak <= 1e6)) throw UsageError(fmt::format("parallel_peak must be at least 1, not {}", o.parallel_peak));
}

// A candidate of any strategy, placed when first asked.
struct Offer {
  const Facts* facts = nullptr;
  Strategy strategy = Strategy::none;
  const Choices* choices = nullptr;
  Candidate candidate;
  double cost = 0;
  std::int64_t live_peak = 0;  // a bound on `peak`
  std::int64_t peak = -1;      // -1: not placed yet
};

class Planner {
 public:
  Planner(const Graph& captured, const PlanOptions& options)
      : options_(options),
        watch_{options.cancel, options.progress},
        graph_(prepare(captured, &passes_, options.sharing)),
        facts_(collect_facts(graph_, options.costs.get(), options.sharing)) {}

  Plan make() {
    watch_.check();
    regions_ = choose_regions(facts_);
    greedy_ = choose_greedily(facts_, watch_);
    add_offers(facts_, Strategy::greedy, greedy_);  // begins with keep all
    if (facts_.has_parts) {  // what lies in one buffer cannot be made again; apart, some of it may get by with less
      apart_ = without_parts(facts_);
      greedy_apart_ = choose_greedily(apart_, watch_);
      add_offers(apart_, Strategy::greedy, greedy_apart_);
    }
    if (regions_.candidates.back().journal > 0) add_offers(facts_, Strategy::regions, regions_, 1);

    keep_all_peak_ = peak(offers_.front());
    floor_ = peak(least_peak([](const Offer&) { return true; }));
    budget_ = options_.budget;
    if (options_.budget_percent >= 0)
      budget_ = static_cast<std::int64_t>(std::floor(options_.budget_percent / 100.0 * static_cast<double>(keep_all_peak_)));
    return plan_offer(choose());
  }

 private:
  void add_offers(const Facts& facts, Strategy strategy, const Choices& choices, std::size_t first = 0) {
    CloneLists clones(graph_.nodes.size());
    std::size_t done = 0;
    for (std::size_t i = first; i < choices.candidates.size(); ++i) {
      const Candidate& candidate = choices.candidates[i];
      apply_steps(choices.journal, done, candidate.journal, &clones);
      done = candidate.journal;
      Offer offer{&facts, strategy, &choices, candidate, schedule_cost(facts, clones), facts.external_bytes + candidate.live_peak, -1};
      offers_.push_back(offer);
    }
  }

  std::int64_t peak(Offer& offer) {
    if (offer.peak < 0) {
      watch_.check();
      offer.peak = placed_peak(*offer.facts, clones_of(offer), options_.alignment);
    }
    return offer.peak;
  }

  CloneLists clones_of(const Offer& offer) const {
    return clones_after(*offer.facts, offer.choices->journal, offer.candidate.journal);
  }

  // Of the offers that are allowed, the one with the least placed peak; the cheapest of those.
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
      if (!best || peak(*o) < best->peak || (peak(*o) == best->peak && o->cost < best->cost)) best = o;
      peak(*best);
    }
    return *best;
  }

  template <class Allowed>
  Offer* cheapest_that_fits(Allowed allowed) {
    std::vector<Offer*> by_cost;
    for (Offer& o : offers_)
      if (allowed(o) && o.live_peak <= budget_) by_cost.push_back(&o);
    std::stable_sort(by_cost.begin(), by_cost.end(), [](const Offer* a, const Offer* b) { return a->cost < b->cost; });
    for (Offer* o : by_cost)
      if (peak(*o) <= budget_) return o;
    return nullptr;
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
  bool wanted_without_budget(const Offer& o) const {
    const bool has_regions = offers_.back().strategy == Strategy::regions;
    return has_regions ? o.strategy == Strategy::regions : o.candidate.journal == 0;
  }

  const Offer& choose() {
    const auto allowed = [&](const Offer& o) { return allows(o); };
    if (budget_ < 0) return *std::find_if(offers_.begin(), offers_.end(), allowed);
    Offer* fits = cheapest_that_fits(allowed);
    return fits ? *fits : least_peak(allowed);
  }

  Plan plan_offer(const Offer& offer) {
    PlanOptions options = options_;
    options.budget = budget_;
    options.budget_percent = -1;
    Plan plan = finish_plan(*offer.facts, clones_of(offer), options, &passes_);
    plan.keep_all_cost_us = facts_.keep_all_cost;
    plan.strategy = strategy_name(named_strategy(offer));
    plan.budget_bytes = budget_;
    plan.floor_bytes = std::min(floor_, plan.peak_bytes);  // placed for several threads, a plan may get by with less
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
  Watch watch_;
  PassRunner passes_;
  Graph graph_;
  Facts facts_, apart_;
  Choices regions_, greedy_, greedy_apart_;
  std::vector<Offer> offers_;
  std::int64_t keep_all_peak_ = 0, floor_ = 0, budget_ = -1;
};

}  // namespace

Plan make_plan(const Graph& graph, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  Plan plan = Planner(graph, options).make();
  plan.solve_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (settings_from_environment().debug >= 2)
    if (const std::vector<std::string> violations = check_plan(plan); !violations.empty())
      throw InvalidGraphError(fmt::format("the planner made a plan that breaks its rules: {}", fmt::join(violations, "; ")));
  return plan;
}

}  // namespace tapedeck
