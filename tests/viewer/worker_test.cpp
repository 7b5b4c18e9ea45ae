// Tests the background worker: only the newest request counts, and no call blocks.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/worker.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace tapedeck::viewer {
namespace {

std::shared_ptr<const Graph> some_graph() { return std::make_shared<const Graph>(make_random_plan(1, 20).plan.graph); }

Plan answer(std::int64_t budget) {
  Plan plan = make_random_plan(1, 20).plan;
  plan.budget_bytes = budget;
  return plan;
}

TEST(PlanWorker, TheNewestRequestWins) {
  std::atomic<int> solves{0}, cancelled{0};
  PlanWorker worker([] {},
                    [&](const std::shared_ptr<const Graph>&, const PlanOptions& options) {
                      ++solves;
                      // A request with a small budget ends only when it is cancelled.
                      while (options.budget < 100 && !*options.cancel) std::this_thread::yield();
                      if (*options.cancel) {
                        ++cancelled;
                        throw Cancelled("cancelled");
                      }
                      return answer(options.budget);
                    });
  PlanOptions options;
  for (int i = 0; i < 50; ++i) {
    options.budget = i;
    worker.request(some_graph(), options);
  }
  EXPECT_TRUE(worker.busy());
  options.budget = 1000;
  const std::uint64_t last = worker.request(some_graph(), options);
  const auto result = worker.wait();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->number, last);
  ASSERT_TRUE(result->model);
  EXPECT_EQ(result->model->plan().budget_bytes, 1000);
  EXPECT_FALSE(worker.busy());
  EXPECT_FALSE(worker.take());
  EXPECT_GE(solves.load(), 1);
  EXPECT_LE(cancelled.load(), 50);
}

TEST(PlanWorker, ErrorsComeBackAsText) {
  PlanWorker worker([] {},
                    [](const std::shared_ptr<const Graph>&, const PlanOptions&) -> Plan { throw UsageError("no such thing"); });
  worker.request(some_graph(), {});
  const auto result = worker.wait();
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->model);
  EXPECT_EQ(result->error, "no such thing");
}

TEST(PlanWorker, WakesAndReportsProgress) {
  std::atomic<int> wakes{0};
  PlanWorker worker([&] { ++wakes; },
                    [](const std::shared_ptr<const Graph>&, const PlanOptions& options) {
                      options.progress(0.5);
                      return answer(7);
                    });
  worker.request(some_graph(), {});
  ASSERT_TRUE(worker.wait());
  EXPECT_DOUBLE_EQ(worker.progress(), 0.5);
  EXPECT_GE(wakes.load(), 1);
}

TEST(PlanWorker, CancelForgetsAndDestructionDoesNotWait) {
  std::atomic<bool> started{false};
  {
    PlanWorker worker([] {},
                      [&](const std::shared_ptr<const Graph>&, const PlanOptions& options) -> Plan {
                        started = true;
                        while (!*options.cancel) std::this_thread::yield();
                        throw Cancelled("cancelled");
                      });
    worker.request(some_graph(), {});
    worker.cancel();
    EXPECT_FALSE(worker.busy());
    EXPECT_FALSE(worker.take());
    worker.request(some_graph(), {});
    while (!started) std::this_thread::yield();
  }
}

// A training step of equal layers, whose values can be made again.
std::shared_ptr<const Graph> chain(int layers) {
  std::string text = "graph chain(%x: u8[64]) {\n%a0: u8[64] = opaque(%x) {us=1.0}\n";
  for (int i = 1; i <= layers; ++i) text += fmt::format("%a{}: u8[64] = opaque(%a{}) {{us=1.0}}\n", i, i - 1);
  text += fmt::format("%g{}: u8[64] = opaque(%a{}) {{us=1.0}} [phase=backward]\n", layers, layers);
  for (int i = layers; i >= 1; --i)
    text += fmt::format("%g{}: u8[64] = opaque(%g{}, %a{}) {{us=1.0}} [phase=backward]\n", i - 1, i, i);
  return std::make_shared<const Graph>(parse(text + "return %g0\n}\n", "chain"));
}

// A budget after the first picks from the same search, and gets the plan that make_plan gives.
TEST(BudgetPlans, AreThoseOfMakePlan) {
  BudgetPlans plans;
  for (int layers : {8, 12}) {
    const auto graph = chain(layers);
    PlanOptions options;
    const std::int64_t peak = make_plan(*graph, options).keep_all_peak_bytes;
    for (const double percent : {-1.0, 90.0, 60.0, 75.0}) {
      options.budget_percent = percent;
      EXPECT_EQ(print(plans.plan(graph, options).graph), print(make_plan(*graph, options).graph)) << percent;
    }
    options.budget_percent = -1;
    options.budget = peak - 1;
    const Plan picked = plans.plan(graph, options), alone = make_plan(*graph, options);
    EXPECT_EQ(print(picked.graph), print(alone.graph));
    EXPECT_EQ(picked.peak_bytes, alone.peak_bytes);
    EXPECT_FALSE(plans.prepares(graph.get()));
  }
}

// A second budget of the same graph does not cancel what it needs itself: the search is prepared once.
TEST(PlanWorker, ANewBudgetWaitsForThePreparationsOfItsGraph) {
  const auto graph = chain(20);
  std::atomic<int> told{0};
  PlanWorker worker([&] { ++told; });
  PlanOptions options;
  for (const double percent : {95.0, 90.0, 85.0, 80.0}) {
    options.budget_percent = percent;
    worker.request(graph, options);
  }
  const auto result = worker.wait();
  ASSERT_TRUE(result);
  ASSERT_TRUE(result->model) << result->error;
  EXPECT_EQ(result->model->plan().budget_bytes, make_plan(*graph, options).budget_bytes);
}

}  // namespace
}  // namespace tapedeck::viewer
