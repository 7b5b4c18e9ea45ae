// The planner as a list of stages, in two parts: the stages that no budget changes, done once, and the stages that answer for
// one budget.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/bound_cost.h>
#include <tapedeck/capture/planner/choose_candidate.h>
#include <tapedeck/capture/planner/planning.h>
#include <tapedeck/capture/planner/recompute_wished.h>

#include <cstdint>

namespace tapedeck {

class PlanStages {
 public:
  // Everything that no budget changes. The graph outlives this object. Throws as make_plan. Only what has looked for
  // budgets may be asked for one.
  PlanStages(const Graph& captured, const PlanOptions& options, LookFor look_for);

  const Limits& limits() const { return limits_; }

  // The plan for a budget in bytes; -1: without one. Equal budgets give equal plans, whatever was asked before; solve_ms is
  // left alone. Throws as make_plan. REQUIRES: `strategy` is that of the options, or answers_for() it.
  Plan plan(std::int64_t budget, Strategy strategy);

  // Whether all choices of the strategy are among those that these options ask for: they name it, or `auto` asks it too.
  bool answers_for(Strategy strategy) const;

 private:
  PlanStages(const Graph& captured, const PlanOptions& options, LookFor look_for, Looks looks);
  Plan plan_in_stages(std::int64_t budget, Strategy strategy);

  const Graph& captured_;
  const PlanRequest asked_;
  const PlanOptions options_;  // with the wishes of the program
  Planning planning_;
  Recomputed wished_;  // its graph is the first order's by now
  Limits limits_;
  BoundedCosts bounds_;
};

}  // namespace tapedeck
