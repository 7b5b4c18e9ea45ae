// Tests measurements without a window: the bytes that a replay held against the plan's curve, the times of nodes, points of
// cost over peak, values and stand-ins, the limit of memory, cancelling.
#include <tapedeck/tests/capture/timelines.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/model/measured_csv.h>
#include <tapedeck/viewer/model/measurements.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/planning/available_memory.h>
#include <tapedeck/viewer/planning/replay_task.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

namespace tapedeck::viewer {
namespace {

constexpr MeasureEffort kQuick = {.warm_up_s = 0, .steps_s = 0, .timelines_s = 0};

const Captured& cnn() {
  static const Captured captured = record_model(*find_model("cnn"), {.batch = 2});
  return captured;
}

// A model of its own, of a plan that is made once.
std::shared_ptr<const PlanModel> planned_cnn(double percent) {
  static std::map<double, Plan> plans;
  if (!plans.count(percent))
    plans[percent] = make_plan(cnn().graph, {.budget_percent = percent, .ordering = Ordering::recorded});
  return PlanModel::of(plans[percent]);
}

ReplayValues stand_ins(const Graph& graph) { return replay_values("none.graph", graph); }

MeasuredRun measured(const PlanModel& model) { return measure_replay(model, stand_ins(model.graph()), {.effort = kQuick}); }

TEST(MeasureReplay, HoldsTheBytesOfThePlanToTheByte) {
  for (const double percent : {-1.0, 60.0}) {
    const auto model = planned_cnn(percent);
    const Plan& plan = model->plan();
    ASSERT_TRUE(plan.feasible);
    const MeasuredRun run = measured(*model);
    EXPECT_EQ(run.observed_peak_bytes, plan.peak_bytes);
    EXPECT_EQ(run.most_live, plan.lower_bound_bytes);
    EXPECT_EQ(run.plan, model->serial());
    ASSERT_EQ(run.live.size(), model->curve().size());
    int ran = 0;
    for (std::size_t n = 0; n < run.live.size(); ++n) {
      EXPECT_EQ(run.live[n] >= 0, !std::isnan(run.node_us[n])) << n;
      if (run.live[n] < 0) continue;
      ++ran;
      EXPECT_EQ(run.live[n], model->curve()[n]) << "node " << n << ", " << percent << " %";
      EXPECT_GE(run.node_us[n], 0) << n;
    }
    EXPECT_GT(ran, model->nodes() / 2);
    EXPECT_EQ(run.step.runs, kQuick.least_steps);
    EXPECT_LE(run.step.least_us, run.step.median_us);
    EXPECT_LE(run.step.median_us, run.step.most_us);
  }
}

// Two nodes at once hold the bytes of both, which the plan's order never does.
TEST(MeasureReplay, NodesAtTheSameTimeSeeEachOthersBytes) {
  const Graph graph = parse(
      "graph g(%x: f32[1024]) {\n  %a: f32[] = sum(%x) {axes=[0]}\n  %b: f32[1024] = exp(%x)\n"
      "  %c: f32[] = sum(%b) {axes=[0]}\n  return %a, %c\n}\n");
  const Plan plan = make_plan(graph);
  Timeline step = test::serial_timeline(plan);
  std::vector<std::int64_t> apart(plan.graph.nodes.size(), -1), together = apart;
  EXPECT_EQ(raise_live_bytes(plan, step, &apart), plan.lower_bound_bytes);
  EXPECT_EQ(apart, live_bytes(plan));
  std::int64_t end = 0;
  for (const Slice& s : step.slices) end = std::max(end, s.end_ns);
  for (Slice& s : step.slices) {
    s.start_ns = 0;
    s.end_ns = end;
  }
  raise_live_bytes(plan, step, &together);
  for (const std::int64_t bytes : together) EXPECT_EQ(bytes, plan.lower_bound_bytes);
  EXPECT_LT(*std::min_element(apart.begin(), apart.end()), plan.lower_bound_bytes);
}

TEST(MeasureReplay, TimesHoldForNodesOfTheSameNameInAnotherPlan) {
  const auto keep_all = planned_cnn(-1), half = planned_cnn(60);
  ASSERT_GT(half->plan().recomputed_nodes, 0);
  const MeasuredRun run = measured(*keep_all);
  const std::vector<double> own = measured_node_us(run, *keep_all), other = measured_node_us(run, *half);
  ASSERT_EQ(other.size(), half->graph().nodes.size());
  int clones = 0;
  for (NodeId n = 0; n < half->nodes(); ++n) {
    const Node& node = half->graph().nodes[static_cast<std::size_t>(n)];
    const double us = other[static_cast<std::size_t>(n)];
    if (node.origin.clone && !std::isnan(us)) ++clones;
    for (const NodeTime& time : run.times.nodes)
      if (time.name == profile_name(half->graph(), node)) {
        EXPECT_EQ(us, time.us) << time.name;
      }
  }
  EXPECT_GT(clones, 0);
  for (std::size_t n = 0; n < own.size(); ++n)
    if (!std::isnan(own[n])) {
      EXPECT_EQ(own[n], run.node_us[n]);
    }
}

TEST(MeasureReplay, ARunOfThePlanGoesBeforeTheNewestRun) {
  Measurements all;
  EXPECT_TRUE(all.empty());
  const auto keep_all = planned_cnn(-1), half = planned_cnn(60);
  const auto first = std::make_shared<const MeasuredRun>(measured(*keep_all)),
             second = std::make_shared<const MeasuredRun>(measured(*half));
  all.add(first);
  all.add(second);
  EXPECT_EQ(all.of_plan(*keep_all), first.get());
  EXPECT_EQ(all.newest(), second.get());
  EXPECT_EQ(all.of_plan(*planned_cnn(-1)), nullptr);
  const auto again = std::make_shared<const MeasuredRun>(measured(*keep_all));
  all.add(again);
  EXPECT_EQ(all.of_plan(*keep_all), again.get());
  all.clear();
  EXPECT_TRUE(all.empty());
}

TEST(MeasureTradeoff, EveryPointHoldsItsPeakAndIsComparedWithKeepingEverything) {
  const PlanProblem problem{std::make_shared<const Graph>(cnn().graph), {.ordering = Ordering::recorded}};
  const auto source = search_plans(problem, {});
  const std::vector<std::int64_t> budgets = budgets_to_measure(*source, source->floor() + 1);
  EXPECT_EQ(budgets.front(), source->keep_all_peak());
  EXPECT_EQ(budgets.back(), source->floor());
  EXPECT_TRUE(std::is_sorted(budgets.rbegin(), budgets.rend()));
  EXPECT_NE(std::find(budgets.begin(), budgets.end(), source->floor() + 1), budgets.end());
  const std::vector<PlannedBudget> plans = plans_to_measure(*source, budgets);
  ASSERT_GE(plans.size(), 3u);
  std::set<std::int64_t> peaks;
  for (const PlannedBudget& p : plans) {
    EXPECT_TRUE(peaks.insert(p.plan->peak_bytes).second);
    EXPECT_LE(p.plan->peak_bytes, p.budget);
  }
  double told = 0;
  MeasureWatch watch{.effort = kQuick};
  watch.progress = [&](double share) {
    EXPECT_GE(share, told);
    told = share;
  };
  const std::vector<MeasuredPoint> points = measure_tradeoff(plans, stand_ins(*problem.graph), watch);
  EXPECT_EQ(told, 1);
  ASSERT_EQ(points.size(), plans.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const MeasuredPoint& p = points[i];
    EXPECT_EQ(p.observed_peak_bytes, p.planned_peak_bytes);
    EXPECT_LT(i == 0 ? 0 : points[i - 1].planned_peak_bytes, p.planned_peak_bytes);
    EXPECT_DOUBLE_EQ(p.ratio(), p.step.median_us / points.back().step.median_us);
    EXPECT_GE(p.step.runs, 3);
  }
  EXPECT_EQ(points.back().ratio(), 1);
  EXPECT_EQ(points.back().planned_ratio, 1);
  EXPECT_GT(points.front().planned_ratio, 1);
}

TEST(MeasureReplay, TakesTheValuesOfTheFileAndMakesThoseThatItLacks) {
  const std::string path = ::testing::TempDir() + "measured_run_test.tape";
  TapeFile file = tape_of(cnn());
  ASSERT_FALSE(file.state.empty());
  const std::string name = file.state.begin()->first;
  save_tape(path, file);
  const ReplayValues whole = replay_values(path, file.captured);
  EXPECT_EQ(whole.stand_ins, 0);
  EXPECT_EQ(static_cast<std::int32_t>(whole.state.size()), file.captured.n_state);
  const Tensor stored = file.state.at(name);
  for (ValueId v = 0; v < file.captured.n_state; ++v)
    if (file.captured.value_name(file.captured.n_inputs + v) == name) {
      EXPECT_EQ(whole.state[static_cast<std::size_t>(v)].to_vector<float>(), stored.to_vector<float>());
    }

  file.state.erase(name);
  save_tape(path, file);
  EXPECT_EQ(replay_values(path, file.captured).stand_ins, 1);
  EXPECT_EQ(stand_ins(file.captured).stand_ins, file.captured.n_inputs + file.captured.n_state);

  // Another step at the same path by now.
  save_tape(path, record_model(*find_model("cnn"), {.batch = 3}));
  EXPECT_THROW(replay_values(path, file.captured), UsageError);
  std::filesystem::remove(path);
  EXPECT_THROW(replay_values(path, file.captured), FileError);
}

TEST(MeasureReplay, MoreMemoryThanThereIsIsRefusedWithBothNumbers) {
  EXPECT_NO_THROW(require_memory("a replay", 100, 100));
  EXPECT_NO_THROW(require_memory("a replay", 100, -1));
  try {
    require_memory("a replay", std::int64_t{16} << 30, std::int64_t{11} << 30);
    FAIL();
  } catch (const ExecutionError& error) {
    EXPECT_NE(std::string(error.what()).find("a replay needs 16.00 GiB of memory, and 11.00 GiB are available"),
              std::string::npos)
        << error.what();
  }
#ifdef __linux__
  EXPECT_GT(available_memory_bytes(), std::int64_t{16} << 20);
#endif
  const auto model = planned_cnn(-1);
  EXPECT_GE(bytes_to_replay(model->plan()), model->plan().peak_bytes);
}

TEST(MeasureReplay, CancelEndsItAndAPlanThatDoesNotFitIsNotReplayed) {
  const std::atomic<bool> up{true};
  const auto model = planned_cnn(-1);
  EXPECT_THROW(measure_replay(*model, stand_ins(model->graph()), {.cancel = &up, .effort = kQuick}), Cancelled);
  const auto none = PlanModel::of(make_plan(cnn().graph, {.budget = 1000, .ordering = Ordering::recorded}));
  ASSERT_FALSE(none->plan().feasible);
  EXPECT_THROW(measured(*none), InfeasibleError);
}

TEST(ReplayTask, OnlyTheNewestRequestIsDelivered) {
  std::atomic<int> woken{0};
  ReplayTask task([&] { ++woken; });
  task.set_effort(kQuick);
  EXPECT_FALSE(task.wait().has_value());
  const auto keep_all = planned_cnn(-1), half = planned_cnn(60);
  task.measure(keep_all, "none.graph");
  task.measure(half, "none.graph");
  EXPECT_TRUE(task.busy());
  const auto result = task.wait();
  ASSERT_TRUE(result && result->run) << (result ? result->error : "nothing");
  EXPECT_EQ(result->run->plan, half->serial());
  EXPECT_FALSE(task.busy());
  EXPECT_GT(woken, 0);

  task.measure(keep_all, "none.graph");
  task.cancel();
  EXPECT_FALSE(task.busy());
  EXPECT_FALSE(task.wait().has_value());

  task.measure(keep_all, "no such file.tape");
  const auto missing = task.wait();
  ASSERT_TRUE(missing);
  EXPECT_FALSE(missing->run);
  EXPECT_NE(missing->error.find("no such file.tape"), std::string::npos) << missing->error;
}

TEST(ReplayTask, ReadsTheProfileOfAFile) {
  const std::string path = ::testing::TempDir() + "measured_profile.tape";
  const auto model = planned_cnn(-1);
  TapeFile file = tape_of(cnn());
  ReplayTask task([] {});
  save_tape(path, file);
  task.read_profile(model, path);
  EXPECT_NE(task.wait()->error.find("holds no profile"), std::string::npos);

  const MeasuredRun run = measured(*model);
  file.profile = run.times;
  file.profile->peak_bytes = 12345;
  save_tape(path, file);
  task.read_profile(model, path);
  auto result = task.wait();
  ASSERT_TRUE(result->run) << result->error;
  EXPECT_EQ(result->run->source, "the profile of measured_profile.tape");
  EXPECT_EQ(result->run->observed_peak_bytes, 12345);
  EXPECT_EQ(result->run->plan, 0u);
  const std::vector<double> us = measured_node_us(*result->run, *model);
  for (std::size_t n = 0; n < us.size(); ++n)
    if (!std::isnan(run.node_us[n])) {
      EXPECT_FALSE(std::isnan(us[n])) << n;
    }

  for (NodeTime& time : file.profile->nodes) time.name = "other." + time.name;
  save_tape(path, file);
  task.read_profile(model, path);
  EXPECT_NE(task.wait()->error.find("of another step"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(MeasuredNumbers, ADeviationIsAShareOfThePlannedNumber) {
  EXPECT_EQ(deviation_text(100, 100), "0 %");
  EXPECT_EQ(deviation_text(102, 100), "+2.00 %");
  EXPECT_EQ(deviation_text(98.5, 100), "-1.50 %");
  EXPECT_EQ(deviation(5, 0), 0);
  const StepTimes times = step_times({5, 1, 3});
  EXPECT_EQ(times.median_us, 3);
  EXPECT_EQ(times.least_us, 1);
  EXPECT_EQ(times.most_us, 5);
  EXPECT_EQ(times.runs, 3);
}

TEST(MeasuredNumbers, TheCsvHasPlannedAndMeasuredNumbersOfEveryNode) {
  const auto model = planned_cnn(60);
  const Plan& plan = model->plan();
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  const std::string without = live_bytes_csv(*model, nullptr, {});
  EXPECT_EQ(lines(without), model->nodes() + 3);
  EXPECT_NE(without.find("\npeak,,,," + std::to_string(plan.peak_bytes) + ",,,"), std::string::npos) << without.substr(0, 300);
  MeasuredRun run = measured(*model);
  run.observed_peak_bytes = plan.peak_bytes / 2;
  const std::string with = live_bytes_csv(*model, &run, run.node_us);
  EXPECT_EQ(lines(with), model->nodes() + 3);
  EXPECT_NE(
      with.find("\npeak,,,," + std::to_string(plan.peak_bytes) + "," + std::to_string(plan.peak_bytes / 2) + ",-50.0000,"),
      std::string::npos);
  const std::string bound = std::to_string(plan.lower_bound_bytes);
  EXPECT_NE(with.find("\nmost live,,,," + bound + "," + bound + ",0.0000,"), std::string::npos);
  EXPECT_NE(with.find("run 2 of"), std::string::npos);  // a name with a comma stands in quotes
}

// The table with measured times has orders and totals of its own, whatever the table without them was asked before.
TEST(MeasuredNodes, AreSortedAndSummedByTheirOwnTimes) {
  const auto model = planned_cnn(-1);
  const Table& plain = model->table(TableId::nodes);
  const RowOrder slowest{plain.layout().column("measured"), true};
  EXPECT_EQ(*plain.order(slowest), plain.all_rows());
  EXPECT_EQ(plain.totals_text(plain.totals_of_all()).find("measured"), std::string::npos);
  std::vector<double> us;
  for (NodeId n = 0; n < model->nodes(); ++n) us.push_back(n);
  const Table table = with_measured(plain, us);
  EXPECT_EQ(table.ids(table.order(slowest)->front()).node, model->nodes() - 1);
  EXPECT_NE(table.totals_text(table.totals_of_all()).find(" measured"), std::string::npos);
  EXPECT_EQ(*plain.order(slowest), plain.all_rows());
}

}  // namespace
}  // namespace tapedeck::viewer
