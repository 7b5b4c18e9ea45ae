// Tests the background worker: only the newest request counts, and no call blocks.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/viewer/worker.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
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
                    [&](const Graph&, const PlanOptions& options) {
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
  PlanWorker worker([] {}, [](const Graph&, const PlanOptions&) -> Plan { throw UsageError("no such thing"); });
  worker.request(some_graph(), {});
  const auto result = worker.wait();
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->model);
  EXPECT_EQ(result->error, "no such thing");
}

TEST(PlanWorker, WakesAndReportsProgress) {
  std::atomic<int> wakes{0};
  PlanWorker worker([&] { ++wakes; },
                    [](const Graph&, const PlanOptions& options) {
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
                      [&](const Graph&, const PlanOptions& options) -> Plan {
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

}  // namespace
}  // namespace tapedeck::viewer
