// Tests check_gradients: it passes right gradients, and finds a wrong one where it is.
#include <tapedeck/engine/gradient/check_gradients.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <cmath>
#include <limits>

namespace tapedeck {
namespace {

using testing::message_of;
using Tensors = std::vector<Tensor>;

Tensor f64(const std::vector<double>& values, const Shape& shape) { return from_vector(values, shape); }

const Tensor& a() {
  static const Tensor t = f64({0.3, -1.2, 2.5, 0.7, -0.4, 1.1}, {2, 3});
  return t;
}

TEST(CheckGradients, RightOnesAgree) {
  const Tensor b = f64({0.5, -0.25, 1.5, 2, -1, 0.75}, {3, 2});
  const auto net = [](const Tensors& in) -> Tensors { return {tanh(matmul(in[0], in[1])), sum(exp(in[0]))}; };
  const GradientCheck check = check_gradients(net, {a(), b});
  EXPECT_TRUE(check.ok()) << check.to_string();
  EXPECT_EQ(check.elements, 12);
  EXPECT_LT(check.worst, 1e-6);
  EXPECT_MENTIONS(check.to_string(), "12 gradients agree");
  EXPECT_FALSE(a().requires_grad());
}

// The gradient of a square whose element 4 is twice too large.
Tensors wrong_square(const Tensors& in) {
  return custom_gradient(
      in, [](const Tensors& xs) -> Tensors { return {square(xs[0])}; },
      [](const Tensors& xs, const Tensors&, const Tensors& dys) -> Tensors {
        return {dys[0] * 2.0 * xs[0] * f64({1, 1, 1, 1, 2, 1}, {2, 3})};
      });
}

TEST(CheckGradients, AWrongOneIsFoundWhereItIs) {
  const GradientCheck check = check_gradients(wrong_square, {a()});
  ASSERT_EQ(check.mismatches.size(), 1u) << check.to_string();
  EXPECT_EQ(check.mismatches[0].input, 0u);
  EXPECT_EQ(check.mismatches[0].index, (std::vector<std::int64_t>{1, 1}));
  EXPECT_NEAR(check.mismatches[0].exact, 2 * check.mismatches[0].numeric, 1e-6);
  EXPECT_MENTIONS(check.to_string(), "1 of 6 gradients differ");
  EXPECT_MENTIONS(check.to_string(), "input 0 at [1,1]: backward ");
}

TEST(CheckGradients, AMissingOneIsZero) {
  const auto detached = [](const Tensors& in) -> Tensors { return {in[0].detach() * 3.0}; };
  EXPECT_EQ(check_gradients(detached, {a()}).mismatches.size(), 6u);
  const auto unused = [](const Tensors& in) -> Tensors { return {in[0] * 3.0}; };
  EXPECT_TRUE(check_gradients(unused, {a(), a()}).ok());
}

TEST(CheckGradients, IntegersArePassedOnAndLargeInputsAreSampled) {
  const auto chosen = [](const Tensors& in) -> Tensors { return {index_select(in[0], 0, in[1])}; };
  EXPECT_EQ(check_gradients(chosen, {a(), from_vector(std::vector<std::int32_t>{1}, {1})}).elements, 6);
  GradientCheckOptions few;
  few.most_elements = 10;
  const GradientCheck check =
      check_gradients([](const Tensors& in) -> Tensors { return {square(in[0])}; }, {ones({95}, DType::f64)}, few);
  EXPECT_TRUE(check.ok());
  EXPECT_EQ(check.elements, 10);
}

TEST(CheckGradients, AnyLimitOfElementsServes) {
  const auto squared = [](const Tensors& in) -> Tensors { return {square(in[0])}; };
  GradientCheckOptions options;
  options.most_elements = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(check_gradients(squared, {a()}, options).elements, 6);
  options.most_elements = 0;
  EXPECT_EQ(check_gradients(squared, {a()}, options).elements, 1);
  EXPECT_EQ(check_gradients(squared, {ones({0}, DType::f64)}, options).elements, 0);
}

// The elements after the one that is NaN do not hide it.
TEST(CheckGradients, TheWorstIsNanIfOneIs) {
  const auto broken = [](const Tensors& in) {
    return custom_gradient(
        in, [](const Tensors& xs) -> Tensors { return {square(xs[0])}; },
        [](const Tensors& xs, const Tensors&, const Tensors& dys) -> Tensors {
          return {dys[0] * 2.0 * xs[0] * f64({1, std::nan(""), 1, 1, 1, 1}, {2, 3})};
        });
  };
  const GradientCheck check = check_gradients(broken, {a()});
  EXPECT_EQ(check.mismatches.size(), 1u);
  EXPECT_TRUE(std::isnan(check.worst));
}

TEST(CheckGradients, OtherFloatingTypesAreRefused) {
  const auto twice = [](const Tensors& in) -> Tensors { return {in[0] * 2.0}; };
  EXPECT_MENTIONS(message_of<TypeError>([&] { check_gradients(twice, {ones({2})}); }),
                  "[check_gradients] input 0 is f32[2]: give f64 (");
  EXPECT_MENTIONS(message_of<TypeError>([&] { check_gradients(twice, {Tensor()}); }), "input 0 is undefined");
  const auto narrow = [](const Tensors& in) -> Tensors { return {cast(in[0], DType::f32)}; };
  EXPECT_MENTIONS(message_of<TypeError>([&] { check_gradients(narrow, {a()}); }), "result 0 is f32[2,3], not f64");
}

}  // namespace
}  // namespace tapedeck
