// Cases of SEEDS.md about the executor of an older system, tested on the eager engine. The names hold the numbers of the
// cases. The oracles are closed forms and identities.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using testing::message_of;

Floats random_floats(std::size_t n, std::uint64_t seed, double low, double high) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Floats values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<float>(draw(random)));
  return values;
}

struct Closed {
  const char* name;
  Tensor (*op)(const Arg&, const Arg&);
  double (*value)(double x, double y);
  double (*dx)(double x, double y);
  double (*dy)(double x, double y);
};

TEST(Executor, T86_BinaryOpsAndTheirGradientsInClosedForm) {
  const Closed table[] = {
      {"+", add, [](double x, double y) { return x + y; }, [](double, double) { return 1.0; },
       [](double, double) { return 1.0; }},
      {"-", sub, [](double x, double y) { return x - y; }, [](double, double) { return 1.0; },
       [](double, double) { return -1.0; }},
      {"*", mul, [](double x, double y) { return x * y; }, [](double, double y) { return y; },
       [](double x, double) { return x; }},
      {"/", div, [](double x, double y) { return x / y; }, [](double, double y) { return 1 / y; },
       [](double x, double y) { return -x / (y * y); }},
      {"max", maximum, [](double x, double y) { return std::max(x, y); }, [](double x, double y) { return x >= y ? 1.0 : 0.0; },
       [](double x, double y) { return y > x ? 1.0 : 0.0; }},
      {"min", minimum, [](double x, double y) { return std::min(x, y); }, [](double x, double y) { return x <= y ? 1.0 : 0.0; },
       [](double x, double y) { return y < x ? 1.0 : 0.0; }},
  };
  constexpr std::size_t n = 60;
  for (const Closed& c : table)
    for (std::uint64_t round = 0; round < 3; ++round) {
      SCOPED_TRACE(c.name);
      const Floats xs = random_floats(n, 3 * round, -2, 2), ys = random_floats(n, 3 * round + 1, 0.5, 2);
      const Floats gs = random_floats(n, 3 * round + 2, -1, 1);
      Tensor x = from_vector(xs, {3, 4, 5}), y = from_vector(ys, {3, 4, 5});
      x.requires_grad(true);
      y.requires_grad(true);
      const Tensor z = c.op(x, y);
      backward(z, {.head = from_vector(gs, {3, 4, 5})});
      const Floats zs = z.to_vector<float>(), dx = x.grad().to_vector<float>(), dy = y.grad().to_vector<float>();
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(zs[i], c.value(xs[i], ys[i]), 1e-5);
        EXPECT_NEAR(dx[i], gs[i] * c.dx(xs[i], ys[i]), 1e-5);
        EXPECT_NEAR(dy[i], gs[i] * c.dy(xs[i], ys[i]), 2e-5);
      }
    }
}

// An error is thrown at the wrong call. Earlier results stand, and the next call works.
TEST(Executor, T84_ErrorsComeAtTheCall) {
  Tensor x = from_vector(Floats{1, 2, 3}, {3});
  x.requires_grad(true);
  const Tensor y = x * 2;
  EXPECT_MENTIONS(message_of<TypeError>([&] { y + tensor({1, 2}); }), "[add]");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] {
                    one_hot(from_vector(std::vector<std::int32_t>{0, 9}, {2}), 3);
                  }),
                  "[one_hot]");
  backward(sum(y + 1));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{2, 2, 2}));
}

TEST(Executor, T98_OneTensorAddedEightTimes) {
  Tensor x = tensor({1, 2, 3});
  x.requires_grad(true);
  Tensor total = x + x;
  for (int i = 0; i < 6; ++i) total = total + x;
  EXPECT_EQ(total.to_vector<float>(), (Floats{8, 16, 24}));
  backward(sum(total));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{8, 8, 8}));
}

// The error about a bad shape names the op, wherever the bad shape is.
TEST(Executor, T100_ABadShapeAnywhereIsNamed) {
  const Tensor x = zeros({4, 3}), w = zeros({3, 2}), bad = zeros({4, 2});
  EXPECT_MENTIONS(message_of<TypeError>([&] { sum(relu(matmul(x, w)) + matmul(x, bad)); }), "f32[4,3] x f32[4,2]");
}

// One function returns its argument, another passes its head on as gradient. Five rounds must not damage a value.
TEST(Executor, T110_ResultsThatAreOperandsAndGradientsThatAreHeads) {
  const Floats values{1, -2, 3};
  Tensor x = from_vector(values, {3});
  x.requires_grad(true);
  const auto itself = [](const Tensor& t) { return t; };
  const Tensor head = tensor({0.5f, 7, -1});
  for (int round = 1; round <= 5; ++round) {
    EXPECT_TRUE(bit_equal(itself(x), x));
    const Tensor y = reshape(itself(x), Shape{3}), z = y + 0;
    backward(z, {.head = head});
    const auto n = static_cast<float>(round);
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0.5f * n, 7 * n, -n}));
    EXPECT_EQ(head.to_vector<float>(), (Floats{0.5f, 7, -1})) << "the caller's head is not what gradients add up in";
    EXPECT_EQ(x.to_vector<float>(), values);
    EXPECT_EQ(z.to_vector<float>(), values);
  }
}

struct Dropping : Module {
  Dropout drop{*this, "drop", 0.5};
  Tensor operator()(const Tensor& x) { return drop(x); }
};

TEST(Executor, T116_DropoutFollowsTheMode) {
  Dropping net;
  const Tensor x = ones({1000});
  EXPECT_TRUE(net.training());
  manual_seed(3);
  const Floats trained = net(x).to_vector<float>();
  std::size_t zeros = 0;
  for (float v : trained) {
    EXPECT_TRUE(v == 0 || v == 2) << v;
    zeros += v == 0;
  }
  EXPECT_GT(zeros, 400u);
  EXPECT_LT(zeros, 600u);
  net.train(false);
  EXPECT_FALSE(net.drop.training()) << "the mode reaches the modules inside";
  EXPECT_TRUE(bit_equal(net(x), x));
  net.train();
  EXPECT_FALSE(bit_equal(net(x), x));
  const NoGrad no_grad;
  EXPECT_FALSE(bit_equal(net(x), x)) << "whether gradients are wanted is another question";
}

// Recording does not change the values.
TEST(Executor, T116_RecordingDoesNotChangeValues) {
  const Floats values = random_floats(64, 5, -2, 2);
  Tensor x = from_vector(values, {8, 8});
  const Tensor plain = softmax(matmul(tanh(x), x));
  EXPECT_EQ(tape_stats().nodes, 0);
  x.requires_grad(true);
  const Tensor recorded = softmax(matmul(tanh(x), x));
  EXPECT_GT(tape_stats().nodes, 0);
  EXPECT_TRUE(bit_equal(plain, recorded));
  const NoGrad no_grad;
  EXPECT_TRUE(bit_equal(softmax(matmul(tanh(x), x)), plain));
}

// In the older system a slice of a failed result could be read after the error. Here there is no result to slice.
TEST(Executor, T117_AFailedOpHasNoResult) {
  Tensor y;
  const Tensor labels = from_vector(std::vector<std::int32_t>{1, 7}, {2});
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_THROW(y = one_hot(labels, 3), ExecutionError);
    EXPECT_FALSE(y.defined());
  }
  y = one_hot(labels, 8);
  EXPECT_EQ(slice(y, 1, 7, 8).to_vector<float>(), (Floats{0, 1}));
}

}  // namespace
}  // namespace tapedeck
