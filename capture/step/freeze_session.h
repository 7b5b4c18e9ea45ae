// From eager code inside a memory budget (engine/eager/session.h) to a planned graph: what the session chose call by call, with
// no knowledge of the calls to come, is chosen again for the whole step at once.
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
  // Within the session's budget, less what the process holds beside the step. Feasible or not, like any plan.
  Plan plan;
  // What runs again, in microseconds of the cost model: of the eager run and of the plan.
  double eager_recomputed_us = 0, plan_recomputed_us = 0;
};

// Runs the step once, in a capture and within the budget of the session, and plans the captured graph. `options` are those of
// the plan; their budget is replaced. The step may throw, and CaptureError is thrown as by any capture. What was unused memory
// of the process goes back to the system before.
FrozenStep freeze(const Session& session, const std::function<void(Capture&)>& step, PlanOptions options = {},
                  const std::string& name = "main", Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
