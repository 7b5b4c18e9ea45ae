// Tests captured steps whose modules are frozen, unfrozen and converted between calls. The oracle is an eager twin, which must
// have the same bits after every step.
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/engine/messages.h>

#include <functional>
#include <memory>

namespace tapedeck::module_changes_test {
namespace {

using testing::message_of;

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 8}, fc2{*this, "fc2", 8, 4};
  Tensor operator()(const Tensor& x) { return fc2(relu(fc1(x))); }
};

struct Trainer {
  Net net;
  std::unique_ptr<Optimizer> optimizer = std::make_unique<Adam>(net.parameters());
  std::vector<Tensor> step(const std::vector<Tensor>& in) {
    const Tensor loss = mean(square(net(in[0])));
    backward(loss);
    optimizer->step();
    optimizer->zero_grad();
    return {loss};
  }
};

// Trains for twelve steps. Returns the losses and the parameters.
std::vector<Tensor> train(bool captured, const std::function<void(Trainer&, int)>& before, int* replays = nullptr) {
  manual_seed(3);
  Trainer trainer;
  CapturedStep step([&](const std::vector<Tensor>& in) { return trainer.step(in); });
  std::vector<Tensor> results;
  for (int i = 0; i < 12; ++i) {
    before(trainer, i);
    const std::vector<Tensor> in{full({5, 6}, 0.25 * i - 1, trainer.net.fc1.weight.dtype())};
    results.push_back((captured ? step(in) : trainer.step(in))[0].detach());
  }
  for (const Tensor& p : trainer.net.parameters()) results.push_back(copy(p.detach()));
  if (replays) *replays = step.replays();
  return results;
}

void expect_as_eager(const std::function<void(Trainer&, int)>& before, int least_replays) {
  int replays = 0;
  const std::vector<Tensor> eager = train(false, before), captured = train(true, before, &replays);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << "result " << i;
  EXPECT_GE(replays, least_replays);
}

TEST(CapturedModule, FrozenAndUnfrozenBetweenCalls) {
  expect_as_eager(
      [](Trainer& t, int i) {
        if (i == 4) t.net.fc1.freeze();
        if (i == 8) t.net.fc1.unfreeze();
      },
      8);
}

TEST(CapturedModule, ConvertedBetweenCalls) {
  expect_as_eager(
      [](Trainer& t, int i) {
        if (i != 4 && i != 8) return;
        t.net.to(i == 4 ? DType::f64 : DType::f32);
        t.optimizer = std::make_unique<Adam>(t.net.parameters());
      },
      6);
}

// A recording of other input types stands between the replacement of the optimizer and the next call of the first recording.
TEST(CapturedModule, AnOptimizerReplacedWhileAnotherRecordingServes) {
  const auto run = [](bool captured) {
    manual_seed(4);
    Trainer trainer;
    CapturedStep step([&](const std::vector<Tensor>& in) { return trainer.step(in); });
    std::vector<Tensor> losses;
    for (int i = 0; i < 12; ++i) {
      if (i == 4) trainer.optimizer = std::make_unique<Adam>(trainer.net.parameters());
      const std::vector<Tensor> in{full({i >= 4 && i < 8 ? 3 : 5, 6}, 0.25 * i - 1)};
      losses.push_back((captured ? step(in) : trainer.step(in))[0].detach());
    }
    return losses;
  };
  const std::vector<Tensor> eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << "loss " << i;
}

// Two conversions between two calls may give a parameter the address that it had before.
TEST(CapturedModule, ConvertedTwiceBetweenCalls) {
  Net net;
  CapturedStep evaluate([&](const std::vector<Tensor>& in) {
    const NoGrad no_grad;
    return std::vector<Tensor>{matmul(in[0], cast(net.fc1.weight, DType::f32))};
  });
  const Tensor x = normal({2, 6});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f16, DType::f32}) {
    net.to(DType::f64);
    net.to(dtype);
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(bit_equal(evaluate({x})[0], matmul(x, cast(net.fc1.weight, DType::f32)).detach())) << dtype_name(dtype);
  }
}

TEST(CapturedModule, ChangesInsideACaptureAreRefused) {
  Net net;
  Capture capture;
  EXPECT_MENTIONS(message_of<CaptureError>([&] { net.to(DType::f16); }), "[to] converts tensors inside a capture");
  EXPECT_MENTIONS(message_of<CaptureError>([&] { net.freeze(); }), "[freeze] changes parameters inside a capture");
  EXPECT_MENTIONS(message_of<CaptureError>([&] { net.unfreeze(); }), "[unfreeze] changes parameters inside a capture");
  EXPECT_EQ(net.fc1.weight.dtype(), DType::f32);
  EXPECT_TRUE(net.fc1.weight.requires_grad());
}

}  // namespace
}  // namespace tapedeck::module_changes_test
