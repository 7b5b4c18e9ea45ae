// Tests activations as authors call them: defaults, closed-form values, gradients where two branches of a function meet, and
// error messages.
#include <tapedeck/engine/ops/activation.h>
#include <tapedeck/engine/ops/functions.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>
#include <functional>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::slope;

template <class F>
std::string activation_complaint(F&& f) {
  const std::string text = testing::without_folders(testing::message_of<TypeError>(f));
  return text.substr(0, text.rfind(" (activation_test.cpp:"));
}

void expect_near_values(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST(Activation, GeluOfBothKinds) {
  const Tensor x = tensor({-1, 0, 1});
  expect_near_values(floats_of(gelu(x)), {-0.15865525, 0, 0.84134475});  // the normal distribution at one standard deviation
  const double t = std::tanh(std::sqrt(2 / 3.14159265358979) * 1.044715);
  expect_near_values(floats_of(gelu(x, "tanh")), {-0.5 * (1 - t), 0, 0.5 * (1 + t)});
  EXPECT_EQ(activation_complaint([&] { gelu(x, "sigmoid"); }),
            "[gelu] approximate must be \"none\" or \"tanh\", not \"sigmoid\"");
  EXPECT_EQ(activation_complaint([&] { gelu(from_vector(std::vector<std::int32_t>{1}, {1})); }),
            "[gelu] needs a floating type, got i32[1]");
}

TEST(Activation, SoftplusAndItsStraightPart) {
  expect_near_values(floats_of(softplus(tensor({0, 30}))), {std::log(2.0), 30});
  expect_near_values(floats_of(softplus(tensor({0}), 4)), {std::log(2.0) / 4});
  expect_near_values(floats_of(softplus(tensor({1, 1.5f}), 1, 1)), {std::log(1 + std::exp(1.0)), 1.5});
  expect_near_values(slope([](const Tensor& x) { return softplus(x); }, {0, 30, -30}), {0.5, 1, 0});
  // log(1 + e^0.9) is above the threshold, but 0.9 itself is below it, so the slope is that of the curve.
  expect_near_values(slope([](const Tensor& x) { return softplus(x, 1, 1); }, {0.9f, 1.1f}), {1 / (1 + std::exp(-0.9)), 1});
  EXPECT_EQ(activation_complaint([&] { softplus(tensor({1}), 0); }), "[softplus] beta must be positive, not 0");
}

TEST(Activation, ExponentialRectifiers) {
  const double e = std::exp(-1.0) - 1;
  expect_near_values(floats_of(elu(tensor({-1, 2}), 3)), {3 * e, 2});
  expect_near_values(floats_of(celu(tensor({-2, 2}), 2)), {2 * e, 2});
  expect_near_values(floats_of(selu(tensor({-1, 2}))), {1.0507009873554805 * 1.6732632423543772 * e, 2 * 1.0507009873554805});
  expect_near_values(slope([](const Tensor& x) { return elu(x, 3); }, {-1, 2}), {3 * std::exp(-1.0), 1});
  expect_near_values(slope([](const Tensor& x) { return celu(x, 2); }, {-2, 2}), {std::exp(-1.0), 1});
  EXPECT_EQ(slope([](const Tensor& x) { return selu(x); }, {-200})[0], 0);
  EXPECT_EQ(activation_complaint([&] { elu(tensor({1}), -1); }), "[elu] alpha must not be negative: -1");
  EXPECT_EQ(activation_complaint([&] { celu(tensor({1}), 0); }), "[celu] alpha must be positive, not 0");
}

TEST(Activation, LeakyReluOfAnySlope) {
  EXPECT_EQ(floats_of(leaky_relu(tensor({-2, 3}), 0.5)), (std::vector<float>{-1, 3}));
  EXPECT_EQ(slope([](const Tensor& x) { return leaky_relu(x, 0.5); }, {-2, 3}), (std::vector<float>{0.5f, 1}));
  EXPECT_EQ(slope([](const Tensor& x) { return leaky_relu(x, -0.5); }, {-2, 3}), (std::vector<float>{-0.5f, 1}));
  EXPECT_EQ(slope([](const Tensor& x) { return leaky_relu(x, 0); }, {-2, 3}), (std::vector<float>{0, 1}));
}

TEST(Activation, PreluHasOneWeightPerChannel) {
  Tensor x = from_vector(std::vector<float>{-1, -2, -3, 4}, {1, 2, 2}), w = tensor({0.5f, 0.25f});
  x.requires_grad(true);
  w.requires_grad(true);
  const Tensor y = prelu(x, w);
  EXPECT_EQ(floats_of(y), (std::vector<float>{-0.5f, -1, -0.75f, 4}));
  backward(sum(y));
  EXPECT_EQ(floats_of(x.grad()), (std::vector<float>{0.5f, 0.5f, 0.25f, 1}));
  EXPECT_EQ(floats_of(w.grad()), (std::vector<float>{-3, -3}));
  EXPECT_EQ(floats_of(prelu(tensor({-4, 4}), tensor({0.5f}))), (std::vector<float>{-2, 4}));
  EXPECT_EQ(activation_complaint([&] {
              prelu(tensor({1}), tensor({1, 2}));
            }),
            "[prelu] the weight f32[2] does not broadcast to f32[1]");
}

TEST(Activation, HardOnes) {
  const Tensor x = tensor({-4, -3, -1.5f, 0, 3, 7});
  expect_near_values(floats_of(hardsigmoid(x)), {0, 0, 0.25, 0.5, 1, 1});
  expect_near_values(floats_of(hardswish(x)), {0, 0, -0.375, 0, 3, 7});
  EXPECT_EQ(floats_of(hardtanh(x)), (std::vector<float>{-1, -1, -1, 0, 1, 1}));
  EXPECT_EQ(floats_of(hardtanh(x, -2, 5)), (std::vector<float>{-2, -2, -1.5f, 0, 3, 5}));
  EXPECT_EQ(floats_of(relu6(x)), (std::vector<float>{0, 0, 0, 0, 3, 6}));
  expect_near_values(slope([](const Tensor& v) { return hardswish(v); }, {-4, 0, 1.5f, 4}), {0, 0.5, 1, 1});
  expect_near_values(slope([](const Tensor& v) { return hardsigmoid(v); }, {-4, 0, 4}), {0, 1.0 / 6, 0});
}

TEST(Activation, Shrinking) {
  const Tensor x = tensor({-2, -0.5f, 0.25f, 0.5f, 2});
  EXPECT_EQ(floats_of(hardshrink(x)), (std::vector<float>{-2, 0, 0, 0, 2}));
  EXPECT_EQ(floats_of(softshrink(x)), (std::vector<float>{-1.5f, 0, 0, 0, 1.5f}));
  EXPECT_EQ(floats_of(threshold(x, 0.25, 9)), (std::vector<float>{9, 9, 9, 0.5f, 2}));
  EXPECT_EQ(slope([](const Tensor& v) { return hardshrink(v); }, {-2, 0.25f, 2}), (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(slope([](const Tensor& v) { return threshold(v, 0.25, 9); }, {0.25f, 2}), (std::vector<float>{0, 1}));
  expect_near_values(floats_of(tanhshrink(tensor({1}))), {1 - std::tanh(1.0)});
  EXPECT_EQ(activation_complaint([&] { hardshrink(x, -1); }), "[hardshrink] bound must not be negative: -1");
  EXPECT_EQ(activation_complaint([&] { softshrink(x, -1); }), "[softshrink] bound must not be negative: -1");
}

TEST(Activation, SmoothOnes) {
  const Tensor x = tensor({-1, 0, 100});
  expect_near_values(floats_of(silu(x)), {-1 / (1 + std::exp(1.0)), 0, 100});
  expect_near_values(floats_of(mish(x)), {-std::tanh(std::log(1 + std::exp(-1.0))), 0, 100});
  expect_near_values(floats_of(softsign(x)), {-0.5, 0, 100.0 / 101});
  expect_near_values(floats_of(logsigmoid(x)), {-std::log(1 + std::exp(1.0)), -std::log(2.0), 0});
  expect_near_values(floats_of(logsigmoid(tensor({-200}))), {-200});
  expect_near_values(slope([](const Tensor& v) { return logsigmoid(v); }, {0, -200, 200}), {0.5, 1, 0});
}

TEST(Activation, GluGatesOneHalfByTheOther) {
  const Tensor x = from_vector(std::vector<float>{1, 2, 0, 100, 3, 4, 0, -100}, {2, 4});
  expect_near_values(floats_of(glu(x)), {0.5, 2, 1.5, 0});
  expect_near_values(floats_of(glu(x, 0)), {1 / (1 + std::exp(-3.0)), 2 / (1 + std::exp(-4.0)), 0, 0});
  EXPECT_EQ(activation_complaint([&] { glu(tensor({1, 2, 3})); }), "[glu] axis -1 of f32[3] does not halve");
  EXPECT_EQ(activation_complaint([&] { glu(x, 2); }), "[glu] axis 2 is outside f32[2,4]");
}

TEST(Activation, SwigluIsAProductWithSilu) {
  expect_near_values(floats_of(swiglu(tensor({0, 1}), tensor({3, 4}))), {0, 4 / (1 + std::exp(-1.0))});
}

}  // namespace
}  // namespace tapedeck
