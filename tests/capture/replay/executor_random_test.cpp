// Replays random graphs, with and without a budget, on one, two and four threads. The oracle is run_eagerly().
#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

class ExecutorRandom : public ::testing::TestWithParam<int> {};

TEST_P(ExecutorRandom, EqualsEagerWhateverThePlan) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Graph g = test::RandomGraph(seed).make(5 + static_cast<int>(seed % 40));
  check_replay(g, {.strategy = Strategy::none, .segment_us = 0.2}, 2);
  const Plan keep_all = make_plan(g, {.strategy = Strategy::none});
  PlanOptions tight;
  tight.budget = std::max(keep_all.floor_bytes, keep_all.external_bytes + keep_all.arena_bytes / 2);
  tight.segment_us = 0.2;
  if (make_plan(g, tight).feasible) check_replay(g, tight, 2);
  // Plans for several threads. The first may have up to three times the peak, so that branches need not wait for each other.
  // In the second, the budget and the default factor limit the peak.
  for (int threads : {2, 4}) {
    check_replay(g, {.strategy = Strategy::none, .threads = threads, .segment_us = 0.2, .parallel_peak = 3}, threads);
    tight.threads = threads;
    if (make_plan(g, tight).feasible) check_replay(g, tight, threads);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExecutorRandom, ::testing::Range(0, test::seeds(60)));

}  // namespace
}  // namespace tapedeck
