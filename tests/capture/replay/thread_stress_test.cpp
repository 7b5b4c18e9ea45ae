// A stress test for the thread sanitizer: several threads of the user plan, replay, cancel, draw and seed at the same time.
// Each replays random graphs on one to eight threads and is cancelled at random points. Every result is compared with eager
// code.
//
//     users (four)     make_plan, cancelled or not     replays, cancelled at a random node or a random time     captured steps
//     the main thread  manual_seed() now and then, and the cancelling of plans and runs
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace tapedeck {
namespace {

constexpr int kUsers = 4;
constexpr int kMostThreads = 8;

// The flags by which the main thread cancels the work of the users, one for each.
using Flags = std::array<std::atomic<bool>, kUsers>;

class User {
 public:
  User(std::uint64_t seed, std::atomic<bool>& cancel)
      : dice_{seed * 0x9E3779B97F4A7C15u + 7},
        cancel_(cancel),
        graph_(test::RandomGraph(seed).make(10 + static_cast<int>(seed % 30))) {}

  void work() {
    Executor executor(planned(), {.threads = threads()});
    for (int round = 0; round < 4; ++round) replay(executor);
    train();
  }

 private:
  int threads() { return 1 + static_cast<int>(dice_.below(kMostThreads)); }

  // The flag may go up at any time. Then there is no plan. The last attempt does not look at the flag.
  Plan planned() {
    PlanOptions options;
    options.segment_us = 0.2;
    options.threads = threads();
    options.cancel = &cancel_;
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        return make_plan(graph_, options);
      } catch (const Cancelled&) {
        cancel_ = false;
      }
    }
    options.cancel = nullptr;
    return make_plan(graph_, options);
  }

  // A whole step, or one that is cancelled: by the main thread at any time, or by itself at a random node.
  void replay(Executor& executor) {
    const std::vector<Tensor> inputs = stand_ins(graph_, 0, graph_.n_inputs, 1),
                              state = stand_ins(graph_, graph_.n_inputs, graph_.n_state, 7);
    set_all(executor, inputs, state);
    const auto stop_at = static_cast<NodeId>(dice_.below(2 * executor.plan().graph.node_count() + 1));
    executor.monitor("*", [&](const Monitored& seen) {
      if (seen.node == stop_at) cancel_ = true;
    });
    cancel_ = false;
    try {
      executor.run(RunOptions{.cancel = &cancel_, .progress = [](double) {}});
      expect_equal(executor, run_eagerly(graph_, inputs, state), "it ran");
    } catch (const Cancelled&) {
      const std::vector<std::string> names = executor.state_names();
      for (std::size_t s = 0; s < names.size(); ++s)
        EXPECT_TRUE(bit_equal(executor.state(names[s]), state[s])) << "cancelled, state " << names[s];
    }
  }

  // A captured step that draws while the main thread seeds: each element is dropped or scaled.
  void train() {
    const Tensor x = ones({16, 16});
    Tensor w = full({16, 16}, 0.1);
    w.name("w").role(Role::parameter);
    CapturedStep step = capture(
        [&](const std::vector<Tensor>& in) {
          const Tensor y = dropout(matmul(in[0], w), 0.5);
          next_step();
          return std::vector<Tensor>{y};
        },
        {.executor = {.threads = threads()}});
    for (int i = 0; i < 6; ++i) {
      const Tensor y = step({x})[0];
      const std::vector<float> values = y.to_vector<float>();
      const float kept = 2 * matmul(x, w).to_vector<float>()[0];
      for (const float v : values) ASSERT_TRUE(v == 0 || v == kept) << v;
    }
  }

  test::Dice dice_;
  std::atomic<bool>& cancel_;
  const Graph graph_;
};

TEST(ThreadStress, UsersPlanReplayAndDrawBesideEachOther) {
  const int rounds = test::seeds(12);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Flags flags{};
    std::atomic<int> busy{kUsers};
    std::vector<std::thread> users;
    for (int u = 0; u < kUsers; ++u)
      users.emplace_back([&, u] {
        User(static_cast<std::uint64_t>(round * kUsers + u), flags[static_cast<std::size_t>(u)]).work();
        --busy;
      });
    test::Dice dice{static_cast<std::uint64_t>(round) + 1};
    while (busy > 0) {
      for (std::int64_t wait = dice.below(400); wait > 0 && busy > 0; --wait) std::this_thread::yield();
      flags[static_cast<std::size_t>(dice.below(kUsers))] = true;
      if (dice.below(8) == 0) manual_seed(static_cast<std::uint64_t>(dice.below(1000)));
    }
    for (std::thread& user : users) user.join();
  }
}

}  // namespace
}  // namespace tapedeck
