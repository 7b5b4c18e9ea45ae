// Captured steps of tensors on a GPU: a thousand steps must have the bits of the same eager code on the GPU.
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/gpu/harness/gpu_test.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace tapedeck::gpu {
namespace {

struct GpuTask {
  const char* name;
  Shape sample;
  std::int32_t classes;
  int steps;
};

struct GpuTrace {
  std::vector<Tensor> parameters, losses;  // the losses of the first steps and of the last one
  double us = 0;                           // of a step, without the first ones
  int replays = 0;
};

constexpr int kFirstSteps = 5;  // two are recorded, one runs kernel after kernel, one is captured as a graph

// Trains a net on the GPU, by eager code or by a captured step.
template <class Net>
GpuTrace train_on_gpu(const GpuTask& task, bool captured) {
  manual_seed(17);
  Net net;
  std::vector<std::int32_t> y(static_cast<std::size_t>(task.sample[0]));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int32_t>(i * 7) % task.classes;
  const Tensor labels = to_device(from_vector(y, {task.sample[0]}), "cuda");
  std::vector<Tensor> samples;
  for (int i = 0; i < 4; ++i) samples.push_back(to_device(normal(task.sample), "cuda"));
  net.to("cuda");
  AdamW optimizer(net.parameters(), {.lr = 1e-3});
  const auto eager = [&](const std::vector<Tensor>& in) {
    next_step();
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return std::vector<Tensor>{loss.detach()};
  };
  CapturedStep step = capture(eager);
  GpuTrace trace;
  const auto run = [&](int i) {
    const std::vector<Tensor> in = {samples[static_cast<std::size_t>(i) % samples.size()], labels};
    return captured ? step(in)[0] : eager(in)[0];
  };
  for (int i = 0; i < kFirstSteps; ++i) trace.losses.push_back(run(i));
  synchronize("cuda");
  const auto start = std::chrono::steady_clock::now();
  Tensor last;
  for (int i = 0; i < task.steps; ++i) last = run(i);
  synchronize("cuda");
  trace.us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / task.steps;
  trace.losses.push_back(last);
  trace.parameters = net.parameters();
  trace.replays = step.replays();
  return trace;
}

template <class Net>
void expect_bits_of_eager_code(const GpuTask& task) {
  const GpuTrace eager = train_on_gpu<Net>(task, false), captured = train_on_gpu<Net>(task, true);
  for (std::size_t i = 0; i < eager.losses.size(); ++i)
    EXPECT_TRUE(bit_equal(captured.losses[i], eager.losses[i]))
        << "loss " << i << ": " << eager.losses[i].item() << ", captured " << captured.losses[i].item();
  for (std::size_t k = 0; k < eager.parameters.size(); ++k)
    EXPECT_TRUE(bit_equal(captured.parameters[k], eager.parameters[k])) << eager.parameters[k].name().view();
  EXPECT_EQ(captured.replays, task.steps + kFirstSteps - 2);
  std::printf("%s: eager %.1f us a step, captured %.1f us\n", task.name, eager.us, captured.us);
}

class CapturedGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (stand_in()) GTEST_SKIP() << "tests/capture/step/device_step_test.cpp shows the same with a fake device";
  }
};

struct Perceptron : Module {
  Linear a{*this, "a", 64, 256}, b{*this, "b", 256, 256}, c{*this, "c", 256, 10};
  Tensor operator()(const Tensor& x) { return c(dropout(gelu(b(relu(a(x)))), 0.3)); }
};

TEST_F(CapturedGpu, AThousandStepsOfAPerceptronHaveTheBitsOfEagerCode) {
  expect_bits_of_eager_code<Perceptron>({"perceptron", {128, 64}, 10, 1000});
}

struct ConvolutionNet : Module {
  Conv2d first{*this, "first", 3, 16, 3, Padding(1)}, second{*this, "second", 16, 32, 3, Padding(1)};
  BatchNorm norm{*this, "norm", 16};
  Linear head{*this, "head", 32 * 8 * 8, 10};
  Tensor operator()(const Tensor& x) {
    const Tensor h = relu(norm(first(x)));
    const Tensor p = max_pool2d(relu(second(h)));
    return head(reshape(p, {p.size(0), 32 * 8 * 8}));
  }
};

TEST_F(CapturedGpu, ThreeHundredStepsOfAConvolutionNetHaveTheBitsOfEagerCode) {
  expect_bits_of_eager_code<ConvolutionNet>({"convolution net", {16, 3, 16, 16}, 10, 300});
}

struct AttentionNet : Module {
  Linear in{*this, "in", 32, 64}, head{*this, "head", 64, 10};
  TransformerBlock block{*this, "block", 64, TransformerOptions{.heads = 4, .causal = true}};
  Tensor operator()(const Tensor& x) { return head(mean(block(in(x)), {1})); }
};

TEST_F(CapturedGpu, ThreeHundredStepsOfATransformerBlockHaveTheBitsOfEagerCode) {
  expect_bits_of_eager_code<AttentionNet>({"transformer block", {16, 24, 32}, 10, 300});
}

}  // namespace
}  // namespace tapedeck::gpu
