// The strategies that look at one budget (StrategyEntry::solve). They begin with the cheapest plan that the other strategies
// found in the recorded order, and add a candidate to them that only this budget may take.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>

#include <cstdint>

namespace tapedeck {

struct Candidate;
struct Planning;

// Throws UsageError where the strategy of the options cannot plan this graph. REQUIRES: the orders are found.
void check_strategy(const Planning& planning);

// Does nothing without a budget, for other strategies, and for a budget that was asked for before. `budget`: in bytes, or -1.
// REQUIRES: every order has its candidates.
void solve_for_budget(std::int64_t budget, Strategy strategy, Planning* planning);

// Says in the plan of the chosen candidate what was proven for its budget, if that is more than its bound says already. It says
// nothing of a plan whose first runs wait, because others of that kind may cost less than what was proven.
void note_proof(const Candidate& chosen, const Planning& planning, Plan* plan);

}  // namespace tapedeck
