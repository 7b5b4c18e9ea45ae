// A step of eager code inside a memory budget (engine/eager/session.h), captured and planned for the same budget. The session
// chooses at each call which values to evict, and does not know the calls that follow. The planner chooses for the whole step.
//
//     Session session{.memory_budget = 2_GiB};
//     const FrozenStep frozen = freeze(session, [&](Capture& c) { c.output("loss", train(c.input("x", x))); });
//     Executor executor(frozen.plan);      // the same bits, in the same memory
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/eager/session.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>

namespace tapedeck TAPEDECK_API {

struct FrozenStep {
  Captured captured;
  // Its budget is the session's, less the bytes that the process holds beside the step. It may be infeasible, like any plan.
  Plan plan;
  // The cost of the calls that ran again in the eager run, and of the nodes that run again in the plan, in microseconds of the
  // cost model.
  double eager_recomputed_us = 0, plan_recomputed_us = 0;
};

// Runs the step once, in a capture and within the budget of the session, and plans the captured graph. `options` are those of
// the plan; their budget is replaced. Errors are those of the step, of Capture and of make_plan(). Before the step runs, unused
// memory of the process is given back to the system.
FrozenStep freeze(const Session& session, const std::function<void(Capture&)>& step, PlanOptions options = {},
                  const std::string& name = "main", Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
