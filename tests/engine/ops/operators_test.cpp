// Tests the operators of C++ on tensors, and reductions over one axis. The oracle is the function that an operator stands for.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <type_traits>

namespace tapedeck {
namespace {

using testing::message_of;
using Bools = std::vector<bool>;

// A comparison is no condition, and bools and fractions are no positions.
static_assert(!std::is_constructible_v<bool, Tensor>);
static_assert(!std::is_constructible_v<Index, bool> && !std::is_constructible_v<Index, double>);
static_assert(std::is_constructible_v<Index, unsigned> && std::is_constructible_v<Index, std::size_t>);

TEST(Operators, CompareElementByElement) {
  const Tensor a = tensor({1, 2, 3}), b = tensor({3, 2, 1});
  EXPECT_EQ((a == b).to_vector<bool>(), (Bools{false, true, false}));
  EXPECT_EQ((a != b).to_vector<bool>(), (Bools{true, false, true}));
  EXPECT_EQ((a < b).to_vector<bool>(), (Bools{true, false, false}));
  EXPECT_EQ((a <= b).to_vector<bool>(), (Bools{true, true, false}));
  EXPECT_EQ((a > b).to_vector<bool>(), (Bools{false, false, true}));
  EXPECT_EQ((a >= b).to_vector<bool>(), (Bools{false, true, true}));
  EXPECT_EQ((a > 2).to_vector<bool>(), (Bools{false, false, true}));
  EXPECT_EQ((2 > a).to_vector<bool>(), (Bools{true, false, false}));
  EXPECT_EQ((a == 2).to_vector<bool>(), (Bools{false, true, false}));
  EXPECT_EQ((2 != a).to_vector<bool>(), (Bools{true, false, true}));
  EXPECT_EQ((tensor({1, 2, 3}, DType::i64) <= 2.5).to_vector<bool>(), (Bools{true, true, false}));
}

TEST(Operators, JoinMasksAndBits) {
  const Tensor x = tensor({-1, 0, 1, 2});
  EXPECT_EQ(((x > -1) & (x < 2)).to_vector<bool>(), (Bools{false, true, true, false}));
  EXPECT_EQ(((x < 0) | (x == 2)).to_vector<bool>(), (Bools{true, false, false, true}));
  EXPECT_EQ(((x < 1) ^ (x < 2)).to_vector<bool>(), (Bools{false, false, true, false}));
  EXPECT_EQ((~(x > 0)).to_vector<bool>(), (Bools{true, true, false, false}));
  EXPECT_EQ((tensor({6, 3}, DType::i32) & 2).to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 2}));
  EXPECT_EQ(x[(x > -1) & (x < 2)].to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(Operators, WriteInPlace) {
  Tensor x = tensor({8, 4});
  const Tensor same = x;
  x += 2;
  x -= tensor({1, 2});
  x *= std::size_t{2};
  x /= 4;
  EXPECT_EQ(same.to_vector<float>(), (std::vector<float>{4.5f, 2}));
  EXPECT_TRUE(bit_equal(x, same));
  const Tensor table = tensor({{1, 2}, {3, 4}});
  table[1] += 10;
  table[{Range{}, 0}] *= 2;
  EXPECT_EQ(table.to_vector<float>(), (std::vector<float>{2, 2, 26, 14}));
  Tensor w = tensor({1, 2});
  w.requires_grad(true);
  EXPECT_THROW(w += 1, GradientError);
  EXPECT_THROW(tensor({1}, DType::i64) += 0.5, TypeError);
}

TEST(Operators, RefuseAWriteThatWouldBeLost) {
  const Tensor x = tensor({1, 2, 3}), rows = tensor({0, 2}, DType::i64);
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { x[rows] += 1; });
  EXPECT_MENTIONS(message, "[+=] the left side is a new tensor that shares its bytes with no other");
  EXPECT_MENTIONS(message, "operators_test.cpp:" + std::to_string(line));
  EXPECT_MENTIONS(message_of<TypeError>([&] { x[Range{.step = -1}] /= 2; }), "[/=]");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

TEST(Operators, PassGradientsThroughWrites) {
  Tensor w = tensor({1, 2, 3});
  w.requires_grad(true);
  Tensor y = w * 1;
  y[Range{.start = 1}] *= 5;
  backward(sum(y));
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{1, 5, 5}));
}

TEST(Operators, ReadSubscripts) {
  const Tensor x = tensor({{0, 1, 2}, {3, 4, 5}});
  EXPECT_EQ(x[1].to_vector<float>(), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ((x[{1, -1}].item()), 5);
  EXPECT_EQ((x[{0, 1}].item()), 1);
  EXPECT_EQ((x[{1, 0}].item()), 3) << "two subscripts, not a subscript and a place";
  EXPECT_EQ((x[{1}].shape()), (Shape{3}));
  EXPECT_EQ((x[{}].shape()), (Shape{2, 3}));
  EXPECT_EQ(x[Range{1}].shape(), (Shape{1, 3}));
  EXPECT_EQ((x[{ellipsis, 0}].to_vector<float>()), (std::vector<float>{0, 3}));
  EXPECT_EQ((x[{newaxis, Range{}, newaxis}].shape()), (Shape{1, 2, 1, 3}));
  EXPECT_EQ((x[{tensor({1, 0}, DType::i64), tensor({2, 1}, DType::i32)}].to_vector<float>()), (std::vector<float>{5, 1}));
  EXPECT_EQ(x[x > 2].to_vector<float>(), (std::vector<float>{3, 4, 5}));
  const int line = __LINE__ + 1;
  const std::string message = message_of<TypeError>([&] { x[2]; });
  EXPECT_MENTIONS(message, "[index] position 2 is outside axis 0 of f32[2,3], which has size 2");
  EXPECT_MENTIONS(message, "operators_test.cpp:" + std::to_string(line));
}

TEST(Operators, ReduceOverOneAxis) {
  const Tensor x = tensor({{0.5, 1, 2}, {3, 4, 5}});
  EXPECT_TRUE(bit_equal(sum(x, 0), sum(x, {0})));
  EXPECT_TRUE(bit_equal(sum(x, -1, true), sum(x, {-1}, true)));
  EXPECT_TRUE(bit_equal(mean(x, 1), mean(x, {1})));
  EXPECT_TRUE(bit_equal(max(x, 0), max(x, {0})));
  EXPECT_TRUE(bit_equal(min(x, std::int64_t{0}, true), min(x, {0}, true)));
  EXPECT_TRUE(bit_equal(prod(x, 1), prod(x, {1})));
  EXPECT_TRUE(bit_equal(any(x > 2, 0), any(x > 2, {0})));
  EXPECT_TRUE(bit_equal(all(x > 2, 1), all(x > 2, {1})));
  EXPECT_TRUE(bit_equal(count_nonzero(x, 0), count_nonzero(x, {0})));
  EXPECT_TRUE(bit_equal(logsumexp(x, 0), logsumexp(x, {0})));
  EXPECT_TRUE(bit_equal(var(x, 0, false, 0), var(x, {0}, false, 0)));
  EXPECT_TRUE(bit_equal(std(x, 1, true), std(x, {1}, true)));
  EXPECT_TRUE(bit_equal(norm(x, 1, 0), norm(x, 1, {0})));
  EXPECT_EQ(sum(x).shape(), Shape{}) << "no axis: all of them";
  EXPECT_THROW(sum(x, 2), TypeError);
}

}  // namespace
}  // namespace tapedeck
