// A replay on several threads for which TBB has no memory for tasks: the thread that cannot hand a segment on runs it itself.
#include <tapedeck/tests/allocation/failures.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

TEST(Spawn, ReplaysRunToTheirEndWithoutMemoryForTasks) {
  long refused = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Graph g = test::RandomGraph(seed).make(40);
    PlanOptions options;
    options.segment_us = 0.05;
    options.threads = 4;
    Executor executor(make_plan(g, options), {.threads = 4});
    const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 1), state = stand_ins(g, g.n_inputs, g.n_state, 7);
    const EagerResult eager = run_eagerly(g, inputs, state);
    for (const bool refuse : {true, false, true}) {
      set_all(executor, inputs, state);
      if (refuse) {
        const test::NoTasks none;
        executor.run();
        refused += none.refused();
      } else {
        executor.run();
      }
      expect_equal(executor, eager, refuse ? "without memory for tasks" : "with memory");
    }
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace tapedeck
