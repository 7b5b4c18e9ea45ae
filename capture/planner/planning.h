// The things that all stages of one planning share: the options, the work that the stages may take, the orders found and the
// candidates made from them.
#pragma once

#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/candidate_layouts.h>
#include <tapedeck/capture/planner/candidates.h>
#include <tapedeck/capture/planner/orders.h>
#include <tapedeck/capture/planner/requests/effort.h>
#include <tapedeck/capture/planner/solvers/cancel_and_progress.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {

// The answer of a strategy that looks at one budget (solve_for_budget.h).
struct SolvedBudget {
  StrategyChoices chosen;
  double least_extra_us = 0;
  std::string proof;
};

struct Planning {
  Planning(const PlanOptions& how, LookFor what, Looks looks)
      : options(how),
        look_for(what),
        effort(how),
        watch{how.cancel, never_less(how.progress)},
        passes({.level = how.level}, looks),
        layouts(how, watch) {
    passes.cancel_by(how.cancel);
  }
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  const Order& recorded() const { return *orders.front(); }
  StepSize step_size() const { return size_of(recorded()); }
  // Whether a plan of this graph by `auto` takes the choices of the strategy.
  bool is_in_auto(const StrategyEntry& s) const { return tapedeck::is_in_auto(s, step_size().nodes, look_for); }
  // ... or the options name it.
  bool asks(const StrategyEntry& s) const { return is_in_auto(s) || &s == find_strategy(options.strategy); }

  const PlanOptions& options;  // they outlive the planning
  const LookFor look_for;      // how far the strategies that improve on others look
  const PlanEffort effort;
  const Watch watch;
  PassRunner passes;
  CandidateLayouts layouts;
  std::vector<std::unique_ptr<Order>> orders;   // the recorded order first
  std::deque<Candidate> candidates;             // a deque: references stay good
  std::map<std::int64_t, SolvedBudget> solved;  // by budget; candidates point into it
};

}  // namespace tapedeck
