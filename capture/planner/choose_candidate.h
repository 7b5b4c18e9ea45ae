// The choice among the candidates: the cheapest candidate whose placed peak fits the budget.
//
//     candidate                live peak     placed peak     cost         budget 12,400: the third is the cheapest that fits
//     keeps all                   16,384          16,384    10 us         floor: 9,004, the least placed peak of all
//     greedy, 1 decision          12,292          12,544    11 us
//     greedy, 2 decisions         11,020          12,288    13 us
//     greedy, 3 decisions          9,004           9,004    17 us
//
// Live bytes bound placed peaks from below, so candidates are placed only as far as the answer needs it.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/candidates.h>

#include <cstdint>
#include <functional>

namespace tapedeck {

struct Planning;

// The numbers that are known before a budget is.
struct Limits {
  std::int64_t keep_all_peak = 0;
  std::int64_t floor = -1;  // -1: not looked for
};

// The stage before a budget is known. REQUIRES: every order has its candidates.
Limits find_limits(Planning* planning);

// The budget of the options; -1: none.
std::int64_t budget_in_bytes(const PlanOptions& options, const Limits& limits);

struct Choice {
  const Candidate* candidate = nullptr;
  bool searched = false;                    // the plan gets the offsets of a search
  std::int64_t budget = -1;                 // bytes; -1: none
  Strategy strategy = Strategy::automatic;  // that was asked for
  Limits limits;
};

// The stage. It places candidates and remembers their peaks, which depend on no budget; so one planning answers for any number
// of budgets, in any order. REQUIRES: the candidates of the strategy are there.
Choice choose(const Limits& limits, std::int64_t budget, Strategy strategy, Planning* planning);

using Allowed = std::function<bool(const Candidate&)>;

// Of the candidates that are allowed, the one with the least placed peak; of several the cheapest, and of these the first.
// REQUIRES: one is allowed.
Candidate& least_peak(const Allowed& allowed, Planning* planning);

// Writes into the plan of the chosen candidate how it was chosen: strategy, order, decisions, budget, floor, feasibility.
void note_choice(const Choice& choice, Plan* plan);

}  // namespace tapedeck
