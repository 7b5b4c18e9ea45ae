// Tests the arithmetic of `bench` on timelines whose results are known, and that `bench` makes the runs that it reports.
#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/measure/bench.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tapedeck {
namespace {

TEST(Bench, PercentilesAreMeasuredValues) {
  std::vector<std::int64_t> hundred(100), few = {10, 20, 30};
  std::iota(hundred.begin(), hundred.end(), 1);
  EXPECT_EQ(percentile(hundred, 50), 50);
  EXPECT_EQ(percentile(hundred, 90), 90);
  EXPECT_EQ(percentile(hundred, 99), 99);
  EXPECT_EQ(percentile(hundred, 100), 100);
  EXPECT_EQ(percentile(hundred, 0.001), 1);
  EXPECT_EQ(percentile(few, 50), 20);
  EXPECT_EQ(percentile(few, 90), 30);  // with three runs the slowest tenth is the slowest run
  EXPECT_EQ(percentile(few, 99), 30);
  EXPECT_EQ(percentile({7}, 50), 7);
}

TEST(Bench, OnOneThreadOutsideIsTheGaps) {
  Timeline t;
  t.slices = {{0, 0, 0, 100, 300}, {1, 0, 0, 350, 450}, {2, 1, 0, 500, 900}, {}};
  const KernelTime free = kernel_time(t, 1000, 0);
  EXPECT_EQ(free.kernels_ns, 700);
  EXPECT_EQ(free.outside_ns, 300);
  EXPECT_EQ(free.thread_ns, 700);
  const KernelTime paid = kernel_time(t, 1000, 20);  // three slices and three gaps contain one clock reading each
  EXPECT_EQ(paid.kernels_ns, 640);
  EXPECT_EQ(paid.outside_ns, 240);
  EXPECT_EQ(kernel_time(t, 1000, 1000).outside_ns, 0);
}

TEST(Bench, WithThreadsOutsideIsWhenNobodyRunsAKernel) {
  Timeline t;
  t.slices = {{0, 0, 0, 100, 400}, {1, 1, 1, 300, 500}, {2, 2, 1, 500, 600}, {3, 3, 0, 800, 900}};
  const KernelTime time = kernel_time(t, 1000, 0);
  EXPECT_EQ(time.kernels_ns, 600);  // a kernel runs from 100 to 600 and from 800 to 900 ns
  EXPECT_EQ(time.outside_ns, 400);
  EXPECT_EQ(time.thread_ns, 700);
  EXPECT_EQ(kernel_time(t, 1000, 10).outside_ns, 380);  // two separate times without a kernel
  EXPECT_EQ(kernel_time(Timeline{}, 1000, 10).outside_ns, 1000);
}

TEST(Bench, TheClockCostsSomethingButNotMuch) {
  EXPECT_GT(measure_clock_read_ns(), 0);
  EXPECT_LT(measure_clock_read_ns(), 100000);
}

Executor counting_executor() {
  Executor executor(make_plan(parse(R"(graph count(%x: f32[]) state(%n: f32[]) {
    %next: f32[] = add(%n, %x)
    return %next
    update %n = %next
  })")));
  const float one = 1, zero = 0;
  executor.set_input(0, from_bytes({DType::f32, {}}, &one));
  executor.set_state("n", from_bytes({DType::f32, {}}, &zero));
  return executor;
}

TEST(Bench, RunsWhatItSays) {
  Executor executor = counting_executor();
  const BenchResult r = bench(executor, 1, {.warmup_runs = 5, .min_time_s = 1e-9, .min_runs = 7});
  EXPECT_EQ(r.warmup_runs, 5);
  EXPECT_EQ(r.run_ns.size(), 7u);
  EXPECT_GE(r.timeline_runs, 3);
  EXPECT_TRUE(std::is_sorted(r.run_ns.begin(), r.run_ns.end()));
  EXPECT_GT(r.kernels_ns + r.outside_ns, 0);
  EXPECT_FALSE(r.interrupted);
  EXPECT_EQ(executor.state("n").item(), static_cast<double>(5 + 7 + r.timeline_runs));
}

TEST(Bench, StepsThatAreWaitedForTogetherAreAllRun) {
  Executor executor = counting_executor();
  const BenchResult r =
      bench(executor, 1, {.warmup_runs = 2, .min_time_s = 1e-9, .min_runs = 3, .steps_per_wait = 16, .timelines = false});
  EXPECT_EQ(r.steps_per_wait, 16);
  EXPECT_EQ(r.run_ns.size(), 3u);
  ASSERT_EQ(r.launch_ns.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(r.launch_ns[i], r.run_ns[i]) << "a launch is a part of its step";
  EXPECT_EQ(executor.state("n").item(), 2.0 + 3 * 16);
}

TEST(Bench, TimesForAsLongAsAsked) {
  Executor executor = counting_executor();
  double last = 0;
  const BenchResult r = bench(
      executor, 1, {.warmup_s = 0.001, .until_steady = false, .min_time_s = 0.02, .progress = [&](double f) { last = f; }});
  EXPECT_GE(std::accumulate(r.run_ns.begin(), r.run_ns.end(), std::int64_t{0}), 20'000'000);
  EXPECT_GT(r.warmup_runs, 1);
  EXPECT_GT(last, 0.8);
}

TEST(Bench, StopsWhenToldAndKeepsWhatThereIs) {
  Executor executor = counting_executor();
  std::atomic<bool> stop{true};
  EXPECT_TRUE(bench(executor, 1, {.cancel = &stop}).run_ns.empty());
  stop = false;
  int calls = 0;
  const BenchResult r = bench(executor, 1, {.min_time_s = 1000, .cancel = &stop, .progress = [&](double) {
                                              if (++calls == 4) stop = true;
                                            }});
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.run_ns.size(), 4u);
  EXPECT_EQ(r.timeline_runs, 0);
}

}  // namespace
}  // namespace tapedeck
