// Tests freeze(): the plan meets the budget of the session, and its nodes that run again cost no more than the calls that ran
// again in the session.
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/capture/step/freeze_session.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>

#include <gtest/gtest.h>

#include <deque>

namespace tapedeck {
namespace {

constexpr std::int64_t kUnlimited = 1'000'000'000'000;

struct DeepNet : Module {
  std::deque<Linear> layers;
  std::deque<BatchNorm> norms;
  DeepNet() {
    for (int i = 0; i < 6; ++i) {
      layers.emplace_back(*this, "fc" + std::to_string(i), 16, 16);
      norms.emplace_back(*this, "norm" + std::to_string(i), 16);
    }
  }
  Tensor forward(const Tensor& x) {
    Tensor h = x;
    for (std::size_t i = 0; i < layers.size(); ++i) h = add(h, dropout(gelu(norms[i](layers[i](h))), 0.2));
    return h;
  }
};

// A net, its optimizer and a step of training, ready to be frozen in sessions.
struct DeepTrainer {
  DeepNet net;
  AdamW optimizer{net.parameters()};
  Tensor x = normal({512, 16}), y = normal({512, 16});

  Tensor step(const Tensor& in, const Tensor& wanted) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(sub(net.forward(in), wanted)));
    backward(loss);
    optimizer.step();
    return loss.detach();
  }
  FrozenStep frozen(const Session& session) {
    return freeze(session, [&](Capture& c) { c.output("loss", step(c.input("x", x), c.input("y", y))); });
  }
};

std::int64_t bytes_before() {
  trim_memory();
  return Allocator::host().system_bytes();
}

TEST(FreezeSession, ThePlanFitsTheBudgetAndRunsNoMoreAgainThanTheSession) {
  manual_seed(3);
  DeepTrainer trainer;
  trainer.step(trainer.x, trainer.y);
  const std::int64_t base = bytes_before();
  std::int64_t all = 0;
  {
    Session session{.memory_budget = kUnlimited};
    const FrozenStep frozen = trainer.frozen(session);
    all = session.stats().peak_bytes - base;
    EXPECT_TRUE(frozen.plan.feasible);
    EXPECT_EQ(frozen.eager_recomputed_us, 0);
    EXPECT_EQ(frozen.plan_recomputed_us, 0);
  }
  for (const double part : {0.9, 0.7}) {
    SCOPED_TRACE(part);
    const std::int64_t budget = bytes_before() + static_cast<std::int64_t>(part * static_cast<double>(all));
    Session session{.memory_budget = budget};
    const FrozenStep frozen = trainer.frozen(session);
    EXPECT_LE(session.stats().peak_bytes, budget);
    ASSERT_TRUE(frozen.plan.feasible);
    EXPECT_LE(frozen.plan.peak_bytes, frozen.plan.budget_bytes);
    EXPECT_LE(frozen.plan.budget_bytes, budget);
    EXPECT_GT(frozen.eager_recomputed_us, 0);
    EXPECT_LE(frozen.plan_recomputed_us, frozen.eager_recomputed_us);
  }
}

TEST(FreezeSession, TheCapturedStepHasTheGraphThatACaptureWithoutASessionHas) {
  manual_seed(4);
  DeepTrainer trainer;
  trainer.step(trainer.x, trainer.y);
  Capture capture;
  capture.output("loss", trainer.step(capture.input("x", trainer.x), capture.input("y", trainer.y)));
  const Captured without = capture.finish();
  const std::int64_t budget = bytes_before() + 540'000;
  Session session{.memory_budget = budget};
  const FrozenStep frozen = trainer.frozen(session);
  ASSERT_EQ(frozen.captured.graph.nodes.size(), without.graph.nodes.size());
  for (std::size_t n = 0; n < without.graph.nodes.size(); ++n)
    ASSERT_EQ(frozen.captured.graph.nodes[n].op, without.graph.nodes[n].op) << n;
  EXPECT_EQ(frozen.captured.state.size(), without.state.size());
}

// A replay writes the parameter to which it is bound, and no op of the engine tells the session so.
TEST(FreezeSession, ValuesComputedFromAParameterThatAReplayWritesAreRight) {
  Tensor w = tensor({1, 2, 3, 4});
  Session session{.memory_budget = kUnlimited};
  const Tensor before = exp(w);
  const std::vector<float> old = before.to_vector<float>();
  EXPECT_TRUE(drop(before));
  {
    CapturedStep step = capture([&](const std::vector<Tensor>& in) {
      add_(w, in[0]);
      return std::vector<Tensor>{sum(w)};
    });
    for (int i = 0; i < 4; ++i) step({tensor({1, 1, 1, 1})});
    EXPECT_GT(step.replays(), 0);
    EXPECT_EQ(before.to_vector<float>(), old);
    const Tensor during = exp(w);
    EXPECT_FALSE(drop(during)) << "the replay may write w at any time";
    const std::vector<float> values = during.to_vector<float>();
    step({tensor({1, 1, 1, 1})});
    EXPECT_EQ(during.to_vector<float>(), values);
  }
  const Tensor after = exp(w);
  const std::vector<float> values = after.to_vector<float>();
  EXPECT_TRUE(drop(after)) << "no replay is bound to w any more";
  EXPECT_EQ(after.to_vector<float>(), values);
}

}  // namespace
}  // namespace tapedeck
