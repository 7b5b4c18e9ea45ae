#include <tapedeck/capture/planner/solve_for_budget.h>

#include <tapedeck/capture/planner/planning.h>

#include <algorithm>
#include <limits>

namespace tapedeck {

namespace {

const StrategyEntry* solver_of(Strategy strategy) {
  const StrategyEntry* entry = find_strategy(strategy);
  return entry && entry->solve ? entry : nullptr;
}

// Beyond keep-all, by what keeps at most the budget alive.
double known_extra(std::int64_t budget, const Planning& p) {
  double extra = std::numeric_limits<double>::infinity();
  for (const Candidate& c : p.candidates)
    if (c.order == &p.recorded() && c.only_for < 0 && c.live_peak <= budget)
      extra = std::min(extra, std::max(0.0, c.cost - p.recorded().facts.keep_all_cost));
  return extra;
}

bool first_runs_wait(const Candidate& c) {
  const RunLists runs = runs_after(c.order->facts, c.choices->journal, c.point.journal);
  for (std::size_t stage = 0; stage < runs.size(); ++stage)
    if (runs[stage].empty() || runs[stage].back() != static_cast<NodeId>(stage)) return true;
  return false;
}

}  // namespace

void check_strategy(const Planning& p) {
  const StrategyEntry* entry = find_strategy(p.options.strategy);
  if (entry && entry->check) entry->check(p.recorded().graph);
}

void solve_for_budget(std::int64_t budget, Strategy strategy, Planning* p) {
  const StrategyEntry* solver = solver_of(strategy);
  if (!solver || budget < 0 || p->solved.count(budget)) return;
  const Facts& facts = p->recorded().facts;
  const std::int64_t live_bytes = budget - facts.external_bytes;
  if (live_bytes < 0) return;
  Solved solved = solver->solve(facts, live_bytes, known_extra(budget, *p), p->watch);
  SolvedBudget& known = p->solved[budget];
  known.chosen = {solver, std::move(solved.choices)};
  known.least_extra_us = solved.least_extra_us;
  known.proof = std::move(solved.proof);
  const std::size_t first = p->candidates.size();
  add_points(p->recorded(), known.chosen, p);
  for (std::size_t i = first; i < p->candidates.size(); ++i) p->candidates[i].only_for = budget;
}

void note_proof(const Candidate& chosen, const Planning& p, Plan* plan) {
  const auto solved = p.solved.find(plan->budget_bytes);
  if (solved == p.solved.end() || solved->second.proof.empty() || first_runs_wait(chosen)) return;
  const double least = p.recorded().facts.keep_all_cost + solved->second.least_extra_us;
  if (plan->feasible && (least < plan->cost_lower_bound_us || least > plan->cost_us * (1 + 1e-9))) return;
  plan->bound_from = solved->second.proof;
  if (plan->feasible) plan->cost_lower_bound_us = std::min(least, plan->cost_us);
}

}  // namespace tapedeck
