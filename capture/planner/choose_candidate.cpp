// The stage that chooses. The floor is the least placed peak of the candidates that were placed to find it. With a budget the
// cheapest candidate that fits is taken, or the lowest one if none fits. Without a budget the plan recomputes the checkpoint
// regions that the user's program marks. If there are none, the plan keeps all.
//
// No candidate of `auto` depends on the budget, so the choice is monotone: a larger budget never costs more recomputation. In
// graphs whose candidates are not on a ladder (candidate_ladder.h), each candidate has one layout for all budgets that take it
// because it fits. So no plan of a larger budget fits a smaller budget and costs less than the plan of the smaller one.
#include <tapedeck/capture/planner/choose_candidate.h>

#include <tapedeck/capture/plan/placement_reasons.h>
#include <tapedeck/capture/planner/candidate_ladder.h>
#include <tapedeck/capture/planner/close_candidates.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/schedules/decisions.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tapedeck {

namespace {

// Candidates whose layouts are searched, because they may lower the floor, or may be cheaper at the floor.
constexpr std::size_t kMostSearched = 4, kMostSearchedOfLarge = 1;
constexpr std::size_t kLarge = 1000;  // nodes; beyond, a search may take a second
constexpr std::int64_t kNear = 256;   // a peak above another by at most this part of it can come down to it
constexpr std::size_t kMostCompared = 4;
constexpr std::size_t kPlacesAll = 128;  // nodes; of larger graphs, the look for the least peak ends after so many in vain:
constexpr std::size_t kMostInVain = 16, kMostInVainOfMany = 4;
constexpr std::int64_t kSteps = 16;     // of live bytes, at which the layouts of the cheapest candidates are searched
constexpr std::int64_t kAnyBudget = 0;  // for questions that have the same answer for every budget
constexpr double kAnyCost = std::numeric_limits<double>::infinity();

template <class Key>
bool is_lower_by(Key key, Candidate& a, Candidate& b, CandidateLayouts* layouts) {
  if (layouts->peak(a) != layouts->peak(b)) return layouts->peak(a) < layouts->peak(b);
  return key(a) != key(b) ? key(a) < key(b) : a.number < b.number;
}

double cost_of(const Candidate& c) { return c.cost; }

// Compares two candidates of equal cost. The candidate that keeps everything is plainer, even if recomputing costs nothing;
// otherwise the candidate with the lower peak is.
bool is_plainer(Candidate& a, Candidate& b, CandidateLayouts* layouts) {
  return a.keeps_all() != b.keeps_all() ? a.keeps_all() : is_lower_by(cost_of, a, b, layouts);
}

template <class Key>
std::vector<Candidate*> sorted_by(Key key, const Allowed& allowed, std::deque<Candidate>* candidates) {
  std::vector<Candidate*> sorted;
  for (Candidate& c : *candidates)
    if (allowed(c)) sorted.push_back(&c);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Candidate* a, const Candidate* b) { return key(*a) < key(*b); });
  return sorted;
}

std::int64_t live_peak_of(const Candidate& c) { return c.live_peak; }
std::int64_t runs_of(const Candidate& c) { return c.runs; }
bool keeps_all(const Candidate& c) { return c.keeps_all(); }
bool counts_for_floor(const Candidate& c) { return c.counts_for_floor(); }

// The number of candidates in a row that are placed in vain before the look for the least peak ends, but for searched ones. The
// least peak belongs to one of the candidates with the fewest live bytes, and where placed peaks lie a twentieth above live
// bytes, there are hundreds of others.
std::size_t most_in_vain(const Planning& p) {
  const std::size_t nodes = p.step_size().nodes;
  if (nodes <= kPlacesAll) return p.candidates.size();
  return places_few_candidates(p) ? kMostInVainOfMany : kMostInVain;
}

// Returns the candidate with the least peak. If several have it, it returns the one that `key` puts first.
template <class Key>
Candidate& least_peak_by(Key key, const Allowed& allowed, Planning* p) {
  Candidate* best = nullptr;
  std::size_t in_vain = 0;
  const std::size_t most = most_in_vain(*p);
  for (Candidate* c : sorted_by(live_peak_of, allowed, &p->candidates)) {
    if (best && c->live_peak > best->peak) break;
    if (in_vain == most && !c->searched) continue;
    const bool is_lower = !best || p->layouts.peak(*c) < best->peak;
    in_vain = is_lower ? 0 : std::min(in_vain + 1, most);
    if (is_lower || is_lower_by(key, *c, *best, &p->layouts)) best = c;
    p->layouts.peak(*best);
  }
  return *best;
}

// Whether a search may bring the peak down to the floor.
bool is_near(std::int64_t floor, std::int64_t peak) { return peak - floor <= floor / kNear; }

std::size_t most_searched(const Planning& p) { return p.step_size().nodes > kLarge ? kMostSearchedOfLarge : kMostSearched; }

// Greedy placement may leave the candidate that keeps the fewest bytes alive above others, so the layouts of a few of those are
// tried, too. The layout with the best trial is searched first; the others are searched unless their candidates keep more bytes
// alive than the floor that is known by then. Costs play no part.
std::int64_t find_floor(Planning* p) {
  if (p->look_for == LookFor::draft) return least_peak_by(runs_of, counts_for_floor, p).peak;
  Candidate* best = &least_peak_by(runs_of, counts_for_floor, p);
  std::int64_t floor = p->layouts.tried_peak(*best);
  const auto may_be_lower = [&](const Candidate& c) { return counts_for_floor(c) && c.live_peak < floor; };
  const std::vector<Candidate*> lowest = sorted_by(live_peak_of, may_be_lower, &p->candidates);
  for (std::size_t i = 0; i < lowest.size() && i < most_searched(*p) && lowest[i]->live_peak < floor; ++i) {
    if (p->layouts.tried_peak(*lowest[i]) >= floor) continue;
    best = lowest[i];
    floor = best->peak;
  }
  floor = p->layouts.searched_peak(*best);
  for (std::size_t i = 0; i < lowest.size() && i < most_searched(*p) && lowest[i]->live_peak < floor; ++i)
    floor = std::min(floor, p->layouts.searched_peak(*lowest[i]));
  return floor;
}

// Tries the layouts of candidates that are cheaper than the candidate at the floor, so that a budget at the floor gets the
// cheapest plan; the closest of them is searched if it is near. The floor does not change.
void search_cheapest_at_floor(std::int64_t floor, Planning* p) {
  const auto may_reach_it = [&](const Candidate& c) { return !c.keeps_all() && c.live_peak <= floor; };
  std::size_t tried = 0;
  Candidate* closest = nullptr;
  for (Candidate* c : sorted_by(cost_of, may_reach_it, &p->candidates)) {
    if (tried == most_searched(*p) || p->layouts.peak(*c) == floor) break;
    if (p->layouts.peak(*c) < floor) continue;
    if (p->layouts.tried_peak(*c) == floor) return;
    if (c->peak > floor && (!closest || c->peak < closest->peak)) closest = c;
    ++tried;
  }
  if (closest && is_near(floor, closest->peak)) p->layouts.searched_peak(*closest);
}

// Whether a plan lies below the floor after placement, because it was searched for a budget, or was not placed when the floor
// was found. The planner does not take such a plan, so that the floor is one number, whether a budget is given or not.
bool undercuts(std::int64_t floor, Candidate& c, CandidateLayouts* layouts) { return layouts->peak(c) < floor; }

// Looks at candidates that cost at most `most_cost`.
Candidate* cheapest_that_fits(std::int64_t budget, std::int64_t floor, double most_cost, const Allowed& allowed, Planning* p) {
  const auto may_fit = [&](const Candidate& c) { return allowed(c) && c.live_peak <= budget && c.cost <= most_cost; };
  Candidate* best = nullptr;
  for (Candidate* c : sorted_by(cost_of, may_fit, &p->candidates)) {
    if (best && c->cost > best->cost) break;
    if (undercuts(floor, *c, &p->layouts)) continue;
    if (p->layouts.peak(*c) <= budget && (!best || is_plainer(*c, *best, &p->layouts))) best = c;
  }
  return best;
}

// The candidates that none before them beats by live bytes and cost, the cheapest first, and of equal ones the first.
std::vector<Candidate*> unbeaten(const Allowed& allowed, Planning* p) {
  std::vector<Candidate*> ladder;
  for (Candidate* c : sorted_by(cost_of, allowed, &p->candidates))
    if (ladder.empty() || c->live_peak < ladder.back()->live_peak) ladder.push_back(c);
  return ladder;
}

// Of a ladder, the cheapest candidate within each step of live bytes.
std::vector<Candidate*> cheapest_at_steps(const Limits& limits, const std::vector<Candidate*>& ladder) {
  std::vector<Candidate*> rungs;
  for (std::int64_t step = kSteps - 1; step > 0; --step) {
    const std::int64_t live_bytes = limits.floor + (limits.keep_all_peak - limits.floor) / kSteps * step;
    const auto within = [&](const Candidate* c) { return c->live_peak <= live_bytes; };
    const auto cheapest = std::find_if(ladder.begin(), ladder.end(), within);
    if (cheapest != ladder.end() && (rungs.empty() || rungs.back() != *cheapest)) rungs.push_back(*cheapest);
  }
  return rungs;
}

// The candidate that a budget takes, and whether its offsets are searched. Null: no candidate fits.
struct Taken {
  const Candidate* candidate = nullptr;
  bool searched = false;
};

// First offsets may lie far above the bytes that are alive, and leave a budget to a candidate that is much dearer. So the
// layouts of cheaper candidates are searched until one fits: in small graphs of all that no other beats, in larger graphs of
// those at even steps of live bytes. These candidates are the same for all budgets. So a larger budget never costs more, and no
// plan of a larger budget that fits a smaller one is cheaper than the plan of the smaller one. The walk goes from cheap to
// dear, so that nothing is placed that is dearer than what is taken.
Taken cheapest_after_search(std::int64_t budget, const Limits& limits, const Allowed& allowed, Planning* p) {
  std::vector<Candidate*> ladder = unbeaten(allowed, p);
  if (!closes_candidates(*p)) ladder = cheapest_at_steps(limits, ladder);
  for (const Candidate* c : ladder) {
    if (c->live_peak > budget) continue;
    if (const Candidate* fits = cheapest_that_fits(budget, limits.floor, c->cost, allowed, p)) return {fits, false};
    const std::int64_t peak = p->layouts.placed_peak(*c);
    if (peak <= budget && peak >= limits.floor) return {c, true};
  }
  return {cheapest_that_fits(budget, limits.floor, kAnyCost, allowed, p), false};
}

const Candidate* find_cheapest(std::int64_t budget, std::int64_t floor, const Allowed& allowed, Planning* p) {
  if (places_few_candidates(*p))
    if (const std::vector<Candidate*> ladder = ladder_to_floor(floor, allowed, p); !ladder.empty())
      return cheapest_on_ladder(ladder, budget, floor, allowed, p);
  return cheapest_that_fits(budget, floor, kAnyCost, allowed, p);
}

// The user's wishes if there are any to honour, else keep all.
bool is_wanted_without_budget(const Candidate& c) { return c.order->has_wishes() ? c.is_wish() : c.keeps_all(); }

// Loops and branches stay as recorded unless a strategy works for a budget.
bool may_choose_ways(Strategy strategy, std::int64_t budget) {
  if (budget < 0 || strategy == Strategy::none) return false;
  return strategy == Strategy::automatic || find_strategy(strategy)->taken_for == TakenFor::budget;
}

// Which candidates the options allow.
bool is_allowed(const Candidate& c, Strategy strategy, std::int64_t budget, const Planning& p) {
  if (c.order->has_other_ways() && !may_choose_ways(strategy, budget)) return false;
  if (strategy == Strategy::none) return c.keeps_all();
  if (strategy == Strategy::automatic) return budget >= 0 || is_wanted_without_budget(c);
  const StrategyEntry* asked = find_strategy(strategy);
  if (asked->solve)
    return c.order == &p.recorded() && (c.keeps_all() || (budget >= 0 && (c.only_for < 0 || c.only_for == budget)));
  if (asked->taken_for == TakenFor::wishes) return c.order->has_wishes(asked) ? c.strategy == asked : c.keeps_all();
  return (budget >= 0 && c.strategy == asked) || c.strategy == nullptr;
}

// A strategy for wishes that is asked by name goes as low for a budget that it cannot meet as for one that it can.
bool goes_below_wishes(Strategy strategy, std::int64_t budget) {
  const StrategyEntry* asked = find_strategy(strategy);
  return budget >= 0 && asked && asked->taken_for == TakenFor::wishes;
}

// The candidate for a budget that no candidate of the strategy fits.
Candidate& lowest_of(Strategy strategy, std::int64_t floor, std::int64_t budget, Planning* p) {
  const bool lowest = goes_below_wishes(strategy, budget);
  const auto may_be_least = [&](const Candidate& c) { return counts_for_floor(c) || (lowest && c.live_peak >= floor); };
  return least_peak([&](const Candidate& c) { return is_allowed(c, strategy, budget, *p) && may_be_least(c); }, p);
}

// Whether plans look for a cheaper candidate that fits after a search, which takes too long in large graphs.
bool searches_cheaper(Strategy strategy, const Planning& p) {
  return strategy == Strategy::automatic && p.look_for == LookFor::budgets && p.effort.looks_for_floor() &&
         !places_few_candidates(p);
}

// Whether another candidate needs no search to fit every budget that this one may fit, and costs no more. Looks at a few.
bool is_beaten(const Candidate& candidate, std::int64_t floor, Planning* p) {
  const auto may_beat = [&](const Candidate& c) { return c.live_peak <= candidate.live_peak && c.cost <= candidate.cost; };
  const std::vector<Candidate*> others = sorted_by(live_peak_of, may_beat, &p->candidates);
  for (std::size_t i = 0; i < others.size() && i < kMostCompared; ++i)
    if (p->layouts.peak(*others[i]) <= candidate.live_peak && !undercuts(floor, *others[i], &p->layouts)) return true;
  return false;
}

// The candidate that a plan shows if no candidate of its strategy fits gets searched offsets, with which it may fit after all.
// `auto` may take this candidate too, so its offsets are searched before any budget is known.
void search_lowest_of_each_strategy(std::int64_t floor, Planning* p) {
  for (const StrategyEntry* s : all_strategies()) {
    if (!p->is_in_auto(*s)) continue;
    Candidate& lowest = lowest_of(strategy_named(s->name), floor, kAnyBudget, p);
    if (lowest.live_peak < lowest.peak && !is_beaten(lowest, floor, p)) p->layouts.searched_peak(lowest);
  }
}

// A strategy has a name even where it leaves everything as it is.
const char* strategy_of(const Candidate& c, Strategy strategy, std::int64_t budget) {
  if (strategy != Strategy::automatic) return strategy_name(strategy);
  if (c.strategy) return c.strategy->name;
  return strategy_name(budget < 0 ? Strategy::regions : Strategy::greedy);
}

std::vector<Decision> decisions_behind(const Candidate& c) {
  if (c.point.decisions != kNone) return {c.choices->decisions.begin(), c.choices->decisions.begin() + c.point.decisions};
  const Facts& facts = c.order->facts;
  return decisions_of(facts, changes_after(facts, c.choices->journal, c.point.journal));
}

// "516 bytes, 93.21 % of the peak that keeps all": bytes that can be given as a budget in both ways. The percentage is rounded
// up, so that it is a budget of no fewer bytes.
std::string as_budget(std::int64_t bytes, std::int64_t keep_all_peak) {
  if (keep_all_peak <= 0) return fmt::format("{} bytes", bytes);
  double percent = std::ceil(static_cast<double>(bytes) / static_cast<double>(keep_all_peak) * 1e4) / 100;
  if (budget_in_bytes({.budget_percent = percent}, {keep_all_peak, -1}) < bytes) percent += 0.01;
  return fmt::format("{} bytes, {:.2f} % of the peak that keeps all", bytes, percent);
}

// Placed for several threads, a plan may get by with less than the floor that was searched for one.
std::string why_infeasible(const Plan& plan) {
  std::string text = fmt::format("a budget of {} bytes cannot be met: ", plan.budget_bytes);
  if (plan.peak_bytes > plan.floor_bytes)
    text += fmt::format("strategy {} needs {}; ", plan.strategy, as_budget(plan.peak_bytes, plan.keep_all_peak_bytes));
  return text + fmt::format("the floor is {}; {}", as_budget(plan.floor_bytes, plan.keep_all_peak_bytes), describe_peak(plan));
}

}  // namespace

Candidate& least_peak(const Allowed& allowed, Planning* p) {
  return least_peak_by([](const Candidate& c) { return c.cost; }, allowed, p);
}

Limits find_limits(Planning* p) {
  Limits limits;
  limits.keep_all_peak = p->layouts.searched_peak(least_peak(keeps_all, p));
  if (!p->effort.looks_for_floor()) return limits;
  limits.floor = find_floor(p);
  limits.keep_all_peak = least_peak(keeps_all, p).peak;  // for the floor, a candidate that keeps all may have been searched
  p->layouts.hold_floor(limits.floor);
  if (p->look_for != LookFor::budgets) return limits;
  search_cheapest_at_floor(limits.floor, p);
  if (!places_few_candidates(*p)) search_lowest_of_each_strategy(limits.floor, p);
  return limits;
}

std::int64_t budget_in_bytes(const PlanOptions& options, const Limits& limits) {
  if (options.budget_percent < 0) return options.budget;
  return static_cast<std::int64_t>(std::floor(options.budget_percent / 100.0 * static_cast<double>(limits.keep_all_peak)));
}

// A candidate that fits by its first offsets keeps them, because a search would give it a peak of which other budgets do not
// know. A strategy that looks at one budget need not heed others.
Choice choose(const Limits& limits, std::int64_t budget, Strategy strategy, Planning* p) {
  const Allowed allowed = [&](const Candidate& c) { return is_allowed(c, strategy, budget, *p); };
  Taken taken;
  if (budget >= limits.floor && searches_cheaper(strategy, *p))
    taken = cheapest_after_search(budget, limits, allowed, p);
  else if (budget >= 0)
    taken.candidate = find_cheapest(budget, limits.floor, allowed, p);
  if (!taken.candidate) taken = {&lowest_of(strategy, limits.floor, budget, p), true};
  return {taken.candidate, taken.searched || taken.candidate->only_for >= 0, budget, strategy, limits};
}

void note_choice(const Choice& choice, Plan* plan) {
  const Candidate& c = *choice.candidate;
  plan->strategy = strategy_of(c, choice.strategy, choice.budget);
  plan->order = c.moved.empty() ? c.order->name : "searched";
  plan->budget_bytes = choice.budget;
  // Placed for several threads, a plan may get by with less than the floor.
  plan->floor_bytes = choice.limits.floor < 0 ? plan->peak_bytes : std::min(choice.limits.floor, plan->peak_bytes);
  plan->keep_all_peak_bytes = choice.limits.keep_all_peak;
  plan->decisions = decisions_behind(c);
  if (c.order->has_other_ways()) {
    plan->decisions.insert(plan->decisions.begin(), c.order->loops.begin(), c.order->loops.end());
    plan->keep_all_cost_us = c.order->recorded_cost;
  }
  plan->feasible = choice.budget < 0 || plan->peak_bytes <= choice.budget;
  if (!plan->feasible) plan->infeasible_reason = why_infeasible(*plan);
}

}  // namespace tapedeck
