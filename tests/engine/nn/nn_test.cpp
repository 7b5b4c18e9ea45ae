// Tests modules and optimizers. The oracle of an optimizer is its textbook formula on one number in double precision.
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/engine/messages.h>

#include <cmath>
#include <type_traits>

namespace tapedeck {
namespace {

struct Inner : Module {
  Inner(Module& parent, const std::string& name) : Module(parent, name) {}
  Linear fc{*this, "fc", 3, 2};
  Dropout drop{*this, "drop", 0.5};
};
struct Net : Module {
  Linear fc1{*this, "fc1", 4, 3};
  Inner inner{*this, "inner"};
  Conv2d conv{*this, "conv", 2, 5, 3, Padding(1)};
};

TEST(Module, NamesItsParametersByPath) {
  Net net;
  std::vector<std::string> names;
  for (const Tensor& p : net.parameters()) {
    names.push_back(p.name().str());
    EXPECT_TRUE(p.requires_grad());
    EXPECT_EQ(p.role(), Role::parameter);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"fc1.weight", "fc1.bias", "inner.fc.weight", "inner.fc.bias", "conv.weight",
                                             "conv.bias"}));
  EXPECT_EQ(net["inner"]["fc"].path(), "inner.fc");
  EXPECT_EQ(testing::message_of<UsageError>([&] { net["inner"]["fd"]; }), "module 'inner' has no child 'fd'");
}

TEST(Module, ParametersAreItsOwnHandles) {
  Net net;
  net.parameters()[0].set_grad(ones({4, 3}));
  EXPECT_TRUE(net.fc1.weight.grad().defined());
}

TEST(Module, InitialisesWithinItsBound) {
  manual_seed(1);
  Net net;
  for (float v : net.fc1.weight.to_vector<float>()) EXPECT_LE(std::fabs(v), 0.5f);
  for (float v : net.conv.weight.to_vector<float>()) EXPECT_LE(std::fabs(v), std::sqrt(6 / 18.0f));
  manual_seed(1);
  Net again;
  EXPECT_TRUE(bit_equal(again.conv.weight, net.conv.weight));
}

TEST(Module, LinearIsAProductAndASum) {
  Net net;
  const Tensor x = normal({5, 4});
  EXPECT_TRUE(bit_equal(net.fc1(x), matmul(x, net.fc1.weight) + net.fc1.bias));
  EXPECT_EQ(net.fc1(normal({2, 5, 4})).shape(), (Shape{2, 5, 3}));
  EXPECT_EQ(net.conv(normal({2, 2, 6, 6})).shape(), (Shape{2, 5, 6, 6}));
}

// The bias is added before the sum is rounded, so that what follows is of the low dtype too.
TEST(Module, LinearUnderAutocastHasTheLowDtype) {
  Module root;
  Linear layer(root, "layer", 3, 2);
  const Tensor x = normal({5, 3});
  Tensor y;
  {
    const Autocast autocast(DType::bf16);
    y = layer(x);
  }
  EXPECT_EQ(y.dtype(), DType::bf16);
  const Tensor exact = add(matmul(cast(cast(x, DType::bf16), DType::f32), cast(cast(layer.weight, DType::bf16), DType::f32)),
                           cast(cast(layer.bias, DType::bf16), DType::f32));
  const std::vector<float> got = cast(y, DType::f32).to_vector<float>(), wanted = exact.to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], std::fabs(wanted[i]) / 256 + 1e-6f);
}

// Lists of plain numbers were once in the order kernel, padding, stride. They do not compile.
static_assert(std::is_constructible_v<Conv2d, Module&, const char*, int, int, int>);
static_assert(!std::is_constructible_v<Conv2d, Module&, const char*, int, int, int, int>);
static_assert(!std::is_constructible_v<Conv2d, Module&, const char*, int, int, int, int, int>);
static_assert(std::is_constructible_v<Conv2d, Module&, const char*, int, int, int, Stride, Padding>);
static_assert(!std::is_constructible_v<Conv2d, Module&, const char*, int, int, int, Padding, Stride>);

TEST(Module, Conv2dTakesKernelStrideAndPadding) {
  Module root;
  Conv2d conv(root, "conv", 2, 5, 3, Stride(2), Padding(4));
  EXPECT_EQ(conv.weight.shape(), (Shape{5, 2, 3, 3}));
  EXPECT_EQ(conv(zeros({1, 2, 6, 7})).shape(), (Shape{1, 5, (6 + 8 - 3) / 2 + 1, (7 + 8 - 3) / 2 + 1}));
  Conv2d strided(root, "strided", 2, 5, 3, Stride(3)), padded(root, "padded", 2, 5, 3, Padding(1));
  EXPECT_EQ(strided(zeros({1, 2, 9, 9})).shape(), (Shape{1, 5, 3, 3}));
  EXPECT_EQ(padded(zeros({1, 2, 9, 9})).shape(), (Shape{1, 5, 9, 9}));
}

TEST(Module, DropoutRestsOutsideTraining) {
  Net net;
  const Tensor x = ones({1000});
  EXPECT_FALSE(bit_equal(net.inner.drop(x), x));
  net.train(false);
  EXPECT_FALSE(net.inner.drop.training());
  EXPECT_TRUE(bit_equal(net.inner.drop(x), x));
  net.train();
  EXPECT_FALSE(bit_equal(net.inner.drop(x), x));
}

// ---- optimizers ----

Tensor parameter_w(double value) {
  Tensor w = full({1}, value);
  w.name("w").requires_grad(true);
  return w;
}

// Minimises (w - 3)^2 with the library for some steps, and with `update(w, g)` in double precision beside it.
template <class Update>
void check_optimizer(Optimizer& optimizer, Tensor w, Update&& update) {
  double v = w.item();
  for (int step = 0; step < 50; ++step) {
    backward(square(w - 3));
    update(v, 2 * (v - 3));
    optimizer.step();
    optimizer.zero_grad();
    ASSERT_NEAR(w.item(), v, 2e-5 * std::max(1.0, std::fabs(v))) << "step " << step;
  }
}

TEST(Optimizer, SgdFollowsItsFormula) {
  Tensor w = parameter_w(1);
  Sgd optimizer({w}, {.lr = 0.1, .weight_decay = 0.01});
  check_optimizer(optimizer, w, [](double& v, double g) { v -= 0.1 * (g + 0.01 * v); });
}

TEST(Optimizer, SgdWithMomentumFollowsItsFormula) {
  Tensor w = parameter_w(1);
  Sgd optimizer({w}, {.lr = 0.02, .momentum = 0.9, .weight_decay = 0.01});
  double velocity = 0;
  check_optimizer(optimizer, w, [&](double& v, double g) {
    velocity = 0.9 * velocity + g + 0.01 * v;
    v -= 0.02 * velocity;
  });
}

TEST(Optimizer, AdamWFollowsItsFormula) {
  Tensor w = parameter_w(1);
  AdamW optimizer({w}, {.lr = 0.05, .weight_decay = 0.02});
  double m = 0, s = 0;
  int t = 0;
  check_optimizer(optimizer, w, [&](double& v, double g) {
    ++t;
    m = 0.9 * m + 0.1 * g;
    s = 0.999 * s + 0.001 * g * g;
    v -= 0.05 * 0.02 * v;
    v -= 0.05 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(s / (1 - std::pow(0.999, t))) + 1e-8);
  });
}

TEST(Optimizer, SetLrTakesEffectAtOnce) {
  Tensor w = parameter_w(1);
  Sgd optimizer({w}, {.lr = 0.5});
  w.set_grad(ones({1}));
  optimizer.step();
  EXPECT_EQ(w.item(), 0.5);
  optimizer.set_lr(0.25);
  optimizer.step();
  EXPECT_EQ(w.item(), 0.25);
  const Tensor other = scalar(1);
  optimizer.set_lr(other);
  optimizer.step();
  EXPECT_EQ(w.item(), -0.75);
  EXPECT_THROW(optimizer.set_lr(tensor({1})), TypeError);
}

TEST(Optimizer, SkipsParametersWithoutAGradient) {
  Tensor a = parameter_w(1), b = parameter_w(2);
  AdamW optimizer({a, b}, {.lr = 0.1});
  backward(sum(a));
  optimizer.step();
  EXPECT_NE(a.item(), 1);
  EXPECT_EQ(b.item(), 2);
}

TEST(Optimizer, TakesStridedParametersAndGradients) {
  const Tensor base = full({2, 3}, 1), step = full({3, 2}, 1);
  Tensor w = transpose(base, {1, 0});
  w.requires_grad(true);
  Sgd optimizer({w}, {.lr = 0.5});
  w.set_grad(transpose(from_vector(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3}), {1, 0}));
  optimizer.step();
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{1, -0.5f, 0.5f, -1, 0, -1.5f}));
  EXPECT_EQ(base.to_vector<float>(), (std::vector<float>{1, 0.5f, 0, -0.5f, -1, -1.5f}));
}

TEST(Optimizer, RefusesWhatCannotBeTrained) {
  const Tensor w = scalar(1, DType::i32);
  EXPECT_THROW(Sgd({w}), UsageError);
}

TEST(Optimizer, WritesInPlace) {
  Tensor w = parameter_w(1);
  const Tensor same = w.detach();
  Sgd optimizer({w}, {.lr = 1});
  backward(sum(w));
  optimizer.step();
  EXPECT_EQ(same.item(), 0);
}

}  // namespace
}  // namespace tapedeck
