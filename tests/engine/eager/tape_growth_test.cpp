// Tests that the tape of a training loop stays short, however long the loop runs and whatever the loop keeps. They count
// entries of the tape instead of time: backward() walks over the tape, so a long tape is a slow step.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace tapedeck {
namespace {

struct Lengths {
  std::int64_t nodes, values, regions, strides;
};

Lengths lengths() {
  const Recorder& tape = *thread_state().tape;
  return {tape.graph.node_count(), tape.graph.value_count(), static_cast<std::int64_t>(tape.regions.size()),
          static_cast<std::int64_t>(tape.strides.size())};
}

// Runs `steps` training steps with this forward pass. From one step to the next the loop keeps the loss alone.
void train_steps(int steps, const std::function<Tensor(const Tensor& x, const Tensor& w)>& forward) {
  const Tensor x = ones({4, 4});
  Tensor w = full({4, 4}, 0.5), kept;
  w.requires_grad(true);
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = forward(x, w);
    w.set_grad(Tensor());
    backward(loss);
    kept = loss;
  }
}

Tensor product_loss(const Tensor& x, const Tensor& w) { return sum(tanh(matmul(transpose(x, {1, 0}), w))); }

constexpr int kGrowthSteps = 3000;
constexpr std::int64_t kShort = 5000;  // the tape may have about 1,000 dead nodes before it closes the gaps

void expect_short(const Lengths& now) {
  EXPECT_LT(now.nodes, kShort);
  EXPECT_LT(now.values, kShort);
  EXPECT_LT(now.regions, kShort);
  EXPECT_LT(now.strides, kShort);
}

TEST(TapeGrowth, ALossKeptAcrossSteps) {
  Lengths last{};
  train_steps(kGrowthSteps, [&](const Tensor& x, const Tensor& w) {
    last = lengths();
    return product_loss(x, w);
  });
  expect_short(last);
}

TEST(TapeGrowth, ALossKeptAcrossStepsWithCheckpoints) {
  Lengths last{};
  train_steps(kGrowthSteps, [&](const Tensor& x, const Tensor& w) {
    last = lengths();
    return checkpoint([&] { return product_loss(x, w); }) + checkpoint([&] { return product_loss(w, x); });
  });
  expect_short(last);
}

// Backward asks once for each node that it visits whether it shall stop.
class CountVisits final : public StopCondition {
 public:
  bool must_stop() noexcept override {
    ++visits;
    return false;
  }
  int visits = 0;
};

int visits_of_backward(const Tensor& loss) {
  CountVisits count;
  const HeedHere heed(count);
  backward(loss);
  return count.visits;
}

// A loop that keeps all its losses keeps their nodes on the tape. Backward does not visit the nodes of other losses.
TEST(TapeGrowth, BackwardVisitsOnlyWhatTheGradientReaches) {
  const Tensor x = ones({4, 4});
  Tensor w = full({4, 4}, 0.5);
  w.requires_grad(true);
  std::vector<Tensor> kept;
  int first = 0;
  for (int i = 0; i < 200; ++i) {
    kept.push_back(product_loss(x, w) + checkpoint([&] { return product_loss(w, x); }));
    w.set_grad(Tensor());
    const int visits = visits_of_backward(kept.back());
    if (i == 0) first = visits;
    ASSERT_EQ(visits, first) << "in step " << i;
  }
  EXPECT_GE(first, 8);
  EXPECT_GE(lengths().nodes, 200 * 8) << "the losses keep their nodes";
  EXPECT_EQ(tape_stats().saved_bytes, 0);
}

// A leaf that was written in place has one entry for each version that is read. Dropping the entry of the old version keeps
// the entry of the new one, so the leaf still has one gradient, and its hook runs once. Eight more leaves make the tape find
// entries by a map.
TEST(TapeGrowth, DroppingAnOldEntryOfALeafKeepsTheNewOne) {
  std::vector<Tensor> others, kept;
  for (int i = 0; i < 8; ++i) {
    others.push_back(full({2}, 1.0 + i));
    others.back().requires_grad(true);
    kept.push_back(others.back() * 2);
  }
  Tensor w = full({2}, 3.0);
  w.requires_grad(true);
  int calls = 0;
  w.on_grad([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  Tensor old = w * 2;
  {
    const NoGrad no_grad;
    add_(w, 1);
  }
  const Tensor a = w * 3;
  const Tensor b = others[0] * others[1];  // the tape looks for entries again
  old = Tensor();
  const Tensor c = w * 5;
  backward(sum(a) + sum(c) + sum(b));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{8, 8}));
}

// Regions in which nothing was recorded leave nothing on the tape.
TEST(TapeGrowth, CheckpointsWithoutGradients) {
  Tensor w = full({4, 4}, 0.5);
  w.requires_grad(true);
  const Tensor y = w * 2;
  const NoGrad no_grad;
  for (int i = 0; i < kGrowthSteps; ++i) checkpoint([&] { return y * 2; });
  EXPECT_LT(lengths().regions, 2);
}

// After the tape has closed its gaps, regions that still wait for backward are computed again as before.
TEST(TapeGrowth, RegionsSurviveWhenTheTapeClosesItsGaps) {
  const Tensor x = ones({4, 4});
  Tensor w = full({4, 4}, 0.5);
  w.requires_grad(true);
  const Tensor expected = [&] {
    backward(product_loss(x, w));
    return w.grad();
  }();
  w.set_grad(Tensor());
  const Tensor waiting = checkpoint([&] {
    tanh(w);  // a node that no tensor needs after the region
    return product_loss(x, w);
  });
  Tensor other = full({4, 4}, 0.5);
  other.requires_grad(true);
  Tensor kept;
  for (int i = 0; i < kGrowthSteps; ++i) {
    const Tensor loss = checkpoint([&] { return product_loss(x, other); });
    if (i % 2 == 0) backward(loss);
    kept = loss;
  }
  EXPECT_LT(lengths().regions, kShort);
  backward(waiting);
  EXPECT_TRUE(bit_equal(w.grad(), expected));
  EXPECT_EQ(tape_stats().saved_bytes, x.bytes() + other.bytes()) << "the last loop loss was not differentiated";
  backward(kept);
  EXPECT_EQ(tape_stats().saved_bytes, 0);
}

// A region that was dropped without a backward keeps no bytes.
TEST(TapeGrowth, ARegionThatIsDroppedKeepsNothing) {
  Tensor w = full({4, 4}, 0.5);
  w.requires_grad(true);
  const Tensor y = exp(w);
  const std::int64_t before = tape_stats().saved_bytes;
  checkpoint([&] { return tanh(y * 2); });
  EXPECT_EQ(tape_stats().saved_bytes, before);
  const Tensor z = checkpoint([&] {
    const Tensor unused = tanh(y * 3);
    return sum(y * 2);
  });
  backward(z);
  EXPECT_TRUE(w.grad().defined());
  EXPECT_EQ(tape_stats().saved_bytes, 0);
}

}  // namespace
}  // namespace tapedeck
