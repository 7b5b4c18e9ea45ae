// Measures plans by replaying them. Times are medians of whole steps without a timeline; further steps with one give the times
// of nodes and the bytes that were held. Several plans run in turn, so that what slows the machine down slows all of them.
#pragma once

#include <tapedeck/viewer/model/measurements.h>
#include <tapedeck/viewer/planning/plan_source.h>
#include <tapedeck/viewer/planning/replay_values.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tapedeck::viewer {

// How long steps are measured: warm-up steps first, then steps until the time is over, but no fewer and no more than these.
struct MeasureEffort {
  double warm_up_s = 0.2, steps_s = 0.6, timelines_s = 0.3;
  int least_warm_ups = 1, least_steps = 3, most_steps = 200, most_timelines = 30;
};

// How a measurement is watched. Cancelled is thrown when the flag goes up; a step that has begun to write state ends first.
struct MeasureWatch {
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(double)> progress = {};  // 0 to 1, from the measuring thread
  MeasureEffort effort = {};
};

// The bytes that a measurement holds at once: the peak of the plan, and the values of the inputs, which the executor copies.
std::int64_t bytes_to_replay(const Plan& plan);
// The same for a measurement of several plans in turn. The plans share one arena and one state.
std::int64_t bytes_to_replay(const std::vector<std::shared_ptr<const Plan>>& plans);

// Replays the plan on as many threads as it was made for. Throws what Executor and run() throw: the reason why a plan cannot be
// replayed; Cancelled.
MeasuredRun measure_replay(const PlanModel& model, const ReplayValues& values, const MeasureWatch& watch = {});

// Some budgets from the peak of keeping everything down to the floor, in even steps, and `shown` (-1: none), descending.
std::vector<std::int64_t> budgets_to_measure(const PlanSource& source, std::int64_t shown);

// The plans that fit these budgets. A budget whose plan has the peak of another one is left out. Throws as PlanSource::plan.
struct PlannedBudget {
  std::int64_t budget = -1;
  std::shared_ptr<const Plan> plan;
};
std::vector<PlannedBudget> plans_to_measure(PlanSource& source, const std::vector<std::int64_t>& budgets);

// Measures the plans in turn. The first one is taken as the plan that keeps everything. The points ascend by peak. REQUIRES:
// the plans are feasible, and there is one. Throws as measure_replay.
std::vector<MeasuredPoint> measure_tradeoff(const std::vector<PlannedBudget>& plans, const ReplayValues& values,
                                            const MeasureWatch& watch = {});

}  // namespace tapedeck::viewer
