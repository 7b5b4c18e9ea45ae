// Runs steps and takes their times; see measure_replay.h.
//
//     one plan        warm up, steps, steps with a timeline
//     several plans   each alone for one step, which gives its observed peak; then rounds: a step of each, the order turned
//                     round after each round
#include <tapedeck/viewer/planning/measure_replay.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace tapedeck::viewer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBudgets = 5;                                   // of measure_tradeoff, below the plan that keeps everything
constexpr int kLeastRounds = 5, kMostRounds = 60;             // of measure_tradeoff
constexpr double kWarmUpShare = 0.15, kTimelineShare = 0.25;  // of the progress of one plan

double us_since(Clock::time_point begin) { return std::chrono::duration<double, std::micro>(Clock::now() - begin).count(); }

std::int64_t input_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (ValueId v = 0; v < graph.n_inputs; ++v) bytes += graph.values[static_cast<std::size_t>(v)].type.bytes();
  return bytes;
}

// Runs steps of executors and says how far that is.
class Stepper {
 public:
  explicit Stepper(const MeasureWatch& watch) : watch_(watch) {}

  double step_us(Executor& executor, Timeline* timeline = nullptr) const {
    if (watch_.cancel != nullptr && *watch_.cancel) throw Cancelled("measuring was cancelled");
    RunOptions how;
    how.timeline = timeline;
    how.cancel = watch_.cancel;
    const Clock::time_point begin = Clock::now();
    executor.run(how);
    return us_since(begin);
  }

  void tell(double share) const {
    if (watch_.progress) watch_.progress(std::clamp(share, 0.0, 1.0));
  }

  // Calls `step`, which returns microseconds, until they add up to `seconds`, but `least` to `most` times. Progress goes from
  // `from` to `to`.
  template <class Step>
  void repeat(double seconds, int least, int most, double from, double to, Step step) const {
    double spent = 0;
    for (int n = 0; n < most && (n < least || spent < seconds * 1e6); ++n) {
      spent += step();
      tell(from + (to - from) * std::min({spent / (seconds * 1e6), 1.0, (n + 1.0) / least}));
    }
  }

 private:
  const MeasureWatch& watch_;
};

// The times of every node over several steps.
class NodeTimes {
 public:
  explicit NodeTimes(const Graph& graph) : us_(graph.nodes.size()) {}

  void add(const Timeline& step) {
    const std::int64_t clock = clock_read_ns();
    for (const Slice& s : step.slices)
      if (s.node >= 0 && static_cast<std::size_t>(s.node) < us_.size())
        us_[static_cast<std::size_t>(s.node)].push_back(
            static_cast<double>(std::max<std::int64_t>(s.end_ns - s.start_ns - clock, 0)) / 1000);
  }
  std::vector<double> medians() const {
    std::vector<double> us;
    for (const std::vector<double>& times : us_)
      us.push_back(times.empty() ? std::numeric_limits<double>::quiet_NaN() : median(times));
    return us;
  }

 private:
  std::vector<std::vector<double>> us_;
};

void observe_nodes(const Stepper& stepper, Executor& executor, const MeasureEffort& effort, MeasuredRun* run) {
  const Plan& plan = executor.plan();
  ProfileBuilder by_name(plan.graph, clock_read_ns());
  NodeTimes times(plan.graph);
  run->live.assign(plan.graph.nodes.size(), -1);
  Timeline step, fastest;
  stepper.repeat(effort.timelines_s, effort.least_steps, effort.most_timelines, 1 - kTimelineShare, 1, [&] {
    const double us = stepper.step_us(executor, &step);
    by_name.add(step);
    times.add(step);
    run->most_live = std::max(run->most_live, raise_live_bytes(plan, step, &run->live));
    if (fastest.slices.empty() || step.run_ns < fastest.run_ns) fastest = step;
    return us;
  });
  run->times = by_name.finish();
  run->node_us = times.medians();
  run->timeline = std::make_shared<const Timeline>(std::move(fastest));
}

// The steps of several executors in turn: us[plan][round].
std::vector<std::vector<double>> run_in_turn(const Stepper& stepper, std::vector<Executor>& executors,
                                             const MeasureEffort& effort) {
  std::vector<std::vector<double>> us(executors.size());
  bool backwards = false;
  const auto round = [&](bool counts) {
    double spent = 0;
    for (std::size_t i = 0; i < executors.size(); ++i) {
      const std::size_t plan = backwards ? executors.size() - 1 - i : i;
      const double took = stepper.step_us(executors[plan]);
      if (counts) us[plan].push_back(took);
      spent += took;
    }
    backwards = !backwards;
    return spent;
  };
  const auto plans = static_cast<double>(executors.size());
  stepper.repeat(effort.warm_up_s, effort.least_warm_ups, kMostRounds, 0.2, 0.3, [&] { return round(false); });
  stepper.repeat(effort.steps_s * plans, kLeastRounds, kMostRounds, 0.3, 1, [&] { return round(true); });
  return us;
}

}  // namespace

std::int64_t bytes_to_replay(const Plan& plan) { return plan.peak_bytes + input_bytes(plan.graph); }

std::int64_t bytes_to_replay(const std::vector<std::shared_ptr<const Plan>>& plans) {
  std::int64_t arena = 0, own = 0;
  for (const auto& plan : plans) {
    arena = std::max(arena, plan->arena_bytes);
    own += plan->external_bytes;  // state is held once; counting it for each plan errs on the safe side
  }
  return arena + own + (plans.empty() ? 0 : input_bytes(plans.front()->graph));
}

MeasuredRun measure_replay(const PlanModel& model, const ReplayValues& values, const MeasureWatch& watch) {
  const Plan& plan = model.plan();
  const MeasureEffort& effort = watch.effort;
  const Stepper stepper(watch);
  Executor executor(plan, {std::max(plan.threads, 1), "cpu"});
  set_values(&executor, values);
  MeasuredRun run;
  run.source = "a replay";
  run.threads = std::max(plan.threads, 1);
  stepper.step_us(executor);  // kernel libraries set themselves up in it
  stepper.repeat(effort.warm_up_s, effort.least_warm_ups, effort.most_steps, 0, kWarmUpShare,
                 [&] { return stepper.step_us(executor); });
  std::vector<double> us;
  stepper.repeat(effort.steps_s, effort.least_steps, effort.most_steps, kWarmUpShare, 1 - kTimelineShare, [&] {
    us.push_back(stepper.step_us(executor));
    return us.back();
  });
  run.step = step_times(us);
  observe_nodes(stepper, executor, effort, &run);
  run.observed_peak_bytes = executor.observed_peak_bytes();
  run.plan = model.serial();
  run.planned_peak_bytes = plan.peak_bytes;
  run.planned_us = plan.cost_us;
  return run;
}

std::vector<std::int64_t> budgets_to_measure(const PlanSource& source, std::int64_t shown) {
  const std::int64_t keep_all = source.keep_all_peak(), floor = std::min(source.floor(), keep_all);
  std::vector<std::int64_t> budgets{keep_all};
  for (int i = 1; i <= kBudgets; ++i) budgets.push_back(keep_all - (keep_all - floor) / kBudgets * i);
  budgets.back() = floor;
  if (shown >= floor && shown < keep_all) budgets.push_back(shown);
  std::sort(budgets.rbegin(), budgets.rend());
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

std::vector<PlannedBudget> plans_to_measure(PlanSource& source, const std::vector<std::int64_t>& budgets) {
  std::vector<PlannedBudget> plans;
  for (const std::int64_t budget : budgets) {
    Plan plan = source.plan(budget);
    const bool known =
        std::any_of(plans.begin(), plans.end(), [&](const PlannedBudget& p) { return p.plan->peak_bytes == plan.peak_bytes; });
    if (plan.feasible && !known) plans.push_back({budget, std::make_shared<const Plan>(std::move(plan))});
  }
  return plans;
}

std::vector<MeasuredPoint> measure_tradeoff(const std::vector<PlannedBudget>& plans, const ReplayValues& values,
                                            const MeasureWatch& watch) {
  const Stepper stepper(watch);
  std::vector<MeasuredPoint> points;
  for (const PlannedBudget& p : plans) {
    Executor alone(*p.plan, {std::max(p.plan->threads, 1), "cpu"});
    set_values(&alone, values);
    stepper.step_us(alone);
    points.push_back(
        {p.budget, p.plan->peak_bytes, alone.observed_peak_bytes(), p.plan->recompute_cost_ratio(), StepTimes{}, 0});
    stepper.tell(0.2 * static_cast<double>(points.size()) / static_cast<double>(plans.size()));
  }
  ExecutorOptions shared;
  shared.pool = std::make_shared<ReplayPool>();
  std::vector<Executor> executors;
  for (const PlannedBudget& p : plans) {
    shared.threads = std::max(p.plan->threads, 1);
    executors.emplace_back(*p.plan, shared);
    set_values(&executors.back(), values);
  }
  const std::vector<std::vector<double>> us = run_in_turn(stepper, executors, watch.effort);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].step = step_times(us[i]);
    points[i].keep_all_us = median(us.front());
  }
  std::sort(points.begin(), points.end(),
            [](const MeasuredPoint& a, const MeasuredPoint& b) { return a.planned_peak_bytes < b.planned_peak_bytes; });
  return points;
}

}  // namespace tapedeck::viewer
