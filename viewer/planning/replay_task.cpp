#include <tapedeck/viewer/planning/replay_task.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/planning/available_memory.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr double kPlanning = 0.3;  // the share of planning in the progress of a curve

std::string base_name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

ReplayTask::Result measured_plan(const PlanModel& model, const std::string& path, const MeasureWatch& watch) {
  require_memory("a replay of this plan", bytes_to_replay(model.plan()), available_memory_bytes());
  return {std::make_shared<const MeasuredRun>(measure_replay(model, replay_values(path, model.graph()), watch)), {}, {}};
}

ReplayTask::Result measured_curve(const PlanProblem& problem, const std::string& path, std::int64_t shown, MeasureWatch watch) {
  const std::function<void(double)> tell = watch.progress;
  const std::unique_ptr<PlanSource> source =
      search_plans(problem, {SearchEffort::full, watch.cancel, [&](double share) { tell(kPlanning * share); }});
  const std::vector<PlannedBudget> plans = plans_to_measure(*source, budgets_to_measure(*source, shown));
  if (plans.empty()) throw UsageError("no plan of this step can be measured");
  std::vector<std::shared_ptr<const Plan>> all;
  for (const PlannedBudget& p : plans) all.push_back(p.plan);
  require_memory("measuring these plans", bytes_to_replay(all), available_memory_bytes());
  watch.progress = [&](double share) { tell(kPlanning + (1 - kPlanning) * share); };
  return {nullptr, measure_tradeoff(plans, replay_values(path, *problem.graph), watch), {}};
}

ReplayTask::Result profile_in_file(const PlanModel& model, const std::string& path) {
  TapeFile file = load_tape(path, Check::structure);
  if (!file.profile) throw UsageError(path + " holds no profile; `tapedeck replay --profile --save FILE` writes one");
  MeasuredRun run;
  run.source = "the profile of " + base_name_of(path);
  if (file.profile->machine != machine_name()) run.source += ", from another machine (" + file.profile->machine + ")";
  run.threads = file.profile->threads;
  run.step = {file.profile->run_us, file.profile->run_us, file.profile->run_us, file.profile->steps};
  run.observed_peak_bytes = file.profile->peak_bytes;
  if (file.plan) run.planned_peak_bytes = file.plan->peak_bytes;  // a replay of a file runs its plan
  run.times = std::move(*file.profile);
  const std::vector<double> us = measured_node_us(run, model);
  if (std::all_of(us.begin(), us.end(), [](double x) { return std::isnan(x); }))
    throw UsageError("the profile of " + path + " is of another step: it knows no node of this plan");
  return {std::make_shared<const MeasuredRun>(std::move(run)), {}, {}};
}

}  // namespace

void ReplayTask::measure(std::shared_ptr<const PlanModel> model, std::string path) {
  start([model = std::move(model), path = std::move(path)](const MeasureWatch& watch) {
    return measured_plan(*model, path, watch);
  });
}

void ReplayTask::measure_curve(std::shared_ptr<const PlanProblem> problem, std::string path, std::int64_t shown) {
  start([problem = std::move(problem), path = std::move(path), shown](const MeasureWatch& watch) {
    return measured_curve(*problem, path, shown, watch);
  });
}

void ReplayTask::read_profile(std::shared_ptr<const PlanModel> model, std::string path) {
  start([model = std::move(model), path = std::move(path)](const MeasureWatch&) { return profile_in_file(*model, path); });
}

void ReplayTask::start(std::function<Result(const MeasureWatch&)> work) {
  progress_.reset();
  task_.start([this, effort = effort_, work = std::move(work)](const std::atomic<bool>& cancelled) {
    return work({&cancelled, [this](double share) { progress_.tell(share, wake_); }, effort});
  });
}

}  // namespace tapedeck::viewer
