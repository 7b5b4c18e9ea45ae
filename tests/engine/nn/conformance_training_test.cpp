// Cases of SEEDS.md about normalisation, optimizers, custom functions and dynamic shapes. The names hold the numbers of the
// cases; the expected values are those of the original tests.
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace tapedeck {
namespace {

using testing::message_of;
using Floats = std::vector<float>;

TEST(Training, T27_RunningStatisticsKeepTheirAddresses) {
  struct Net : Module {
    BatchNorm2d norm{*this, "norm", 2};
  } net;
  manual_seed(1);
  const void *mean_at = net.norm.running_mean.data(), *var_at = net.norm.running_var.data();
  const Tensor x = normal({4, 2, 3, 3});
  const Tensor y = net.norm(x);
  const BatchNormResult direct = batch_norm(x, net.norm.weight, net.norm.bias);
  EXPECT_TRUE(bit_equal(y, direct.y));
  EXPECT_EQ(net.norm.running_mean.data(), mean_at);
  EXPECT_EQ(net.norm.running_var.data(), var_at);
  const Floats mean = net.norm.running_mean.to_vector<float>(), var = net.norm.running_var.to_vector<float>();
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(mean[c], 0.1 * direct.mean.to_vector<float>()[c], 1e-6);
    EXPECT_NEAR(var[c], 0.9 + 0.1 * direct.variance.to_vector<float>()[c] * 36 / 35, 1e-6) << "the unbiased variance";
  }
}

// Fits the rows (10,1) and (3,5) to the targets -1 and 1.
Floats fit(const std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>& make, int steps) {
  const Tensor x = from_vector(Floats{10, 1, 3, 5}, {2, 2}), target = from_vector(Floats{-1, 1}, {2, 1});
  const Tensor w = from_vector(Floats{0.1f, -0.1f}, {2, 1}).requires_grad(true);
  const std::unique_ptr<Optimizer> optimizer = make({w});
  for (int i = 0; i < steps; ++i) {
    const Tensor error = matmul(x, w) - target;
    backward(sum(error * error));
    optimizer->step();
    optimizer->zero_grad();
  }
  return matmul(x, w.detach()).to_vector<float>();
}

TEST(Training, T59_LeastSquaresByGradientDescent) {
  const Floats y =
      fit([](std::vector<Tensor> p) { return std::make_unique<Sgd>(std::move(p), SgdOptions{.lr = 0.004}); }, 2000);
  EXPECT_NEAR(y[0], -1, 1e-3);
  EXPECT_NEAR(y[1], 1, 1e-1);
}

TEST(Training, T59_LeastSquaresByAdaptiveSteps) {
  const std::vector<std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>> all = {
      [](std::vector<Tensor> p) { return std::make_unique<Adam>(std::move(p), AdamOptions{.lr = 0.01}); },
      [](std::vector<Tensor> p) { return std::make_unique<Rmsprop>(std::move(p), RmspropOptions{.lr = 0.001}); },
      [](std::vector<Tensor> p) {
        return std::make_unique<AdamW>(std::move(p), AdamWOptions{.lr = 0.01, .weight_decay = 1e-4});
      }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const Floats y = fit(all[i], 2000);
    EXPECT_NEAR(y[0], -1, 1e-1);
    EXPECT_NEAR(y[1], 1, 1e-1);
  }
}

TEST(Training, T63_GradientsOfSomeStatisticsOnly) {
  manual_seed(3);
  const Tensor x = normal({6, 2}).requires_grad(true);
  backward(sum(batch_norm(x).mean * tensor({1, 3})));
  const Floats g = x.grad().to_vector<float>();
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], i % 2 ? 3.0 / 6 : 1.0 / 6, 1e-6);
  const Tensor z = x.detach().requires_grad(true);
  backward(sum(batch_norm(z).variance));
  const Floats v = z.detach().to_vector<float>(), dv = z.grad().to_vector<float>();
  for (std::size_t c = 0; c < 2; ++c) {
    double mean = 0;
    for (std::size_t i = 0; i < 6; ++i) mean += v[2 * i + c] / 6;
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(dv[2 * i + c], 2 * (v[2 * i + c] - mean) / 6, 1e-5);
  }
}

Tensor ten_times(const Tensor& x) {
  return custom_gradient(
      {x}, [](const std::vector<Tensor>& xs) { return std::vector<Tensor>{xs[0] * 10}; },
      [](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>& dys) {
        return std::vector<Tensor>{dys[0] * 20};
      })[0];
}

TEST(Training, T76_ACustomFunctionTrainsByItsOwnGradient) {
  const Tensor a = tensor({7}).requires_grad(true);
  Sgd optimizer({a}, {.lr = 1});
  const Tensor y = ten_times(a);
  EXPECT_EQ(y.item(), 70);
  backward(y);
  optimizer.step();
  EXPECT_EQ(a.item(), 7 - 20);
  const Tensor b = tensor({2}).requires_grad(true);
  const Tensor g = gradients({ten_times(b) * b}, {b}, {.create_graph = true})[0];
  EXPECT_EQ(g.item(), 10 * 2 + 20 * 2) << "the product's own part, then the custom one";
}

TEST(Training, T77_UndefinedGradientsAreSkippedBothWays) {
  const Tensor a = tensor({3}).requires_grad(true), b = tensor({5}).requires_grad(true);
  const std::vector<Tensor> ys = custom_gradient(
      {a, b},
      [](const std::vector<Tensor>& xs) {
        return std::vector<Tensor>{xs[0] * 1, xs[1] * 1};
      },
      [](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>& dys) {
        EXPECT_EQ(dys[1].item(), 0) << "the second result is not used";
        return std::vector<Tensor>{dys[0] * 2, Tensor()};
      });
  backward(ys[0]);
  EXPECT_EQ(a.grad().item(), 2);
  EXPECT_FALSE(b.grad().defined());
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    custom_gradient({a, Tensor()}, {}, {});
                  }),
                  "[custom_gradient] an operand is undefined");
}

TEST(Training, T118_RowsByMask) {
  const Tensor x = from_vector(Floats{1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3}).requires_grad(true);
  const Tensor mask = greater(tensor({0, 1, 1}), 0);
  const Tensor y = boolean_mask(x, mask);
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{4, 5, 6, 7, 8, 9}));
  backward(sum(y));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 0, 0, 1, 1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace tapedeck
