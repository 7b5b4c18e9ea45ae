// Tests gradients of special cases that the examples of ops do not show: ties, broadcasts, promotion.
// all_ops_gradient_test.cpp tests all ops. Expected values are written by hand.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

TEST(Gradient, EqualMaximaShareIt) {
  Tensor x = tensor({1, 3, 3, 2});
  x.requires_grad(true);
  backward(max(x));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0.5f, 0.5f, 0}));
}

TEST(Gradient, TieOfMaximumGoesToTheFirst) {
  Tensor a = tensor({1, 2}), b = tensor({1, 5});
  a.requires_grad(true);
  b.requires_grad(true);
  backward(sum(maximum(a, b)));
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{1, 0}));
  EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(Gradient, SumsOverBroadcastDimensions) {
  Tensor row = tensor({1, 2, 3}), number = scalar(2);
  row.requires_grad(true);
  number.requires_grad(true);
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  backward(sum(mul(add(x, row), number)));
  EXPECT_EQ(row.grad().to_vector<float>(), (std::vector<float>{4, 4, 4}));
  EXPECT_EQ(number.grad().item(), 33);  // sum(x) = 21, plus twice sum(row) = 6
  EXPECT_EQ(number.grad().rank(), 0);
}

TEST(Gradient, PassesThroughPromotion) {
  Tensor x = tensor({1, 2});
  x.requires_grad(true);
  const Tensor y = from_bytes({DType::f64, {2}}, std::vector<double>{3, 4}.data());
  backward(sum(mul(x, y)));
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST(Gradient, PassesThroughACastToTheOperandsType) {
  Tensor x = tensor({1, 2});
  x.requires_grad(true);
  backward(sum(mul(cast(x, DType::f64), from_bytes({DType::f64, {2}}, std::vector<double>{3, 0.5}.data()))));
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 0.5f}));
  EXPECT_FALSE(cast(x, DType::i32).requires_grad());
}

}  // namespace
}  // namespace tapedeck
