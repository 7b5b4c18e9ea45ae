// Tests a captured training step with a schedule, loss scaling and clipping. It needs no host read, and its bits are those
// of the eager step.
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/grad_scaler.h>
#include <tapedeck/engine/nn/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/nn/schedule.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <limits>

namespace tapedeck::scaled_step_test {
namespace {

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 16}, fc2{*this, "fc2", 16, 4};
  Tensor operator()(const Tensor& x) { return fc2(relu(fc1(x))); }
};

struct Training {
  Net net;
  AdamW optimizer{net.parameters()};
  GradScaler scaler{{.scale = 256, .interval = 2}};

  Tensor step(const Tensor& x, const Tensor& y, const Tensor& at) {
    optimizer.set_lr(schedule::warmup_cosine(at, 0.01, 2, 10));
    const Tensor loss = cross_entropy(net(x), y, {.label_smoothing = 0.1});
    backward(scaler.scale_loss(loss));
    scaler.unscale(optimizer);
    clip_grad_norm_(net.parameters(), 0.5);
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
    return loss;
  }
};

Tensor counted(std::int64_t step) { return scalar(static_cast<double>(step), DType::i64); }

std::vector<Tensor> copied(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) {
    const NoGrad no_grad;
    all.push_back(from_bytes(t.type(), contiguous(t).data()));
  }
  return all;
}

class ScaledStep : public ::testing::Test {
 protected:
  ScaledStep() {
    manual_seed(5);
    x = normal({8, 6});
    y = from_vector(std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3}, {8});
    next_step();
    Capture capture("train_step");
    const Tensor xs = capture.input("x", x), ys = capture.input("y", y), at = capture.input("step", counted(0));
    capture.output("loss", training.step(xs, ys, at));
    captured = capture.finish();
  }
  Training training;
  Tensor x, y;
  Captured captured;
};

TEST_F(ScaledStep, ReplaysToTheBitsOfTheEagerStep) {
  ASSERT_EQ(captured.graph.n_inputs, 3) << "the rate is computed from the step";
  const std::vector<Tensor> state = copied(captured.state);
  const EagerResult replayed = run_eagerly(captured.graph, {x, y, counted(1)}, state);
  const Tensor loss = training.step(x, y, counted(1));
  EXPECT_TRUE(bit_equal(replayed.outputs[0], loss));
  for (std::size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(bit_equal(replayed.state[i], captured.state[i])) << captured.state[i].name().view();
  EXPECT_EQ(training.scaler.scale().item(), 512) << "two finite steps";
}

TEST_F(ScaledStep, SkipsWhatIsNotFiniteWhenReplayed) {
  const std::vector<Tensor> state = copied(captured.state);
  const Tensor bad = full({8, 6}, std::numeric_limits<double>::infinity());
  const EagerResult replayed = run_eagerly(captured.graph, {bad, y, counted(1)}, copied(captured.state));
  for (std::size_t i = 0; i < state.size(); ++i) {
    const std::string_view name = captured.state[i].name().view();
    if (name == "rng") continue;
    const double expected = name == "grad_scaler.scale" ? 128 : name == "grad_scaler.finite_steps" ? 0 : -1;
    const bool kept = bit_equal(replayed.state[i], state[i]);
    EXPECT_TRUE(expected < 0 ? kept : replayed.state[i].item() == expected) << name;
  }
}

}  // namespace
}  // namespace tapedeck::scaled_step_test
