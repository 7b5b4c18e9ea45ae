// Tests half precision in the engine: ops compute in f32 on converted operands of any layout and round once; casts;
// gradients; replays under a budget.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

struct HalfOf : ::testing::TestWithParam<DType> {
  Tensor low(const Tensor& t) const { return cast(t, GetParam()); }
  static Tensor high(const Tensor& t) { return cast(t, DType::f32); }
};

TEST_P(HalfOf, OpsComputeInF32AndRoundOnce) {
  manual_seed(5);
  const Tensor a = low(normal({4, 6})), b = low(normal({6, 3})), row = low(normal({6}));
  EXPECT_TRUE(bit_equal(matmul(a, b), low(matmul(high(a), high(b)))));
  EXPECT_TRUE(bit_equal(a * row, low(high(a) * high(row)))) << "broadcast";
  EXPECT_TRUE(bit_equal(exp(transpose_last(a)), low(exp(high(transpose_last(a)))))) << "strided";
  EXPECT_TRUE(bit_equal(sum(slice(a, 1, 1, 4), {1}), low(sum(high(slice(a, 1, 1, 4)), {1}))));
  EXPECT_TRUE(bit_equal(softmax(a, 1), low(softmax(high(a), 1))));
  EXPECT_EQ((a + 1).dtype(), GetParam());
  EXPECT_EQ((a + high(a)).dtype(), DType::f32);
}

TEST_P(HalfOf, LongSumsAccumulateInF32) {
  const Tensor ones_low = full({4096}, 1, GetParam());
  EXPECT_EQ(sum(ones_low).item(), 4096) << "steps of 1 would stop at 2048 or 256";
}

TEST_P(HalfOf, InPlaceAndViews) {
  const Tensor x = low(tensor({1, 2, 3, 4}));
  add_(slice(x, {0}, {4}, {2}), 0.5);
  EXPECT_TRUE(bit_equal(high(x), tensor({1.5, 2, 3.5, 4})));
  zero_(slice(x, 0, 0, 1));
  EXPECT_EQ(cast(x, DType::f64).to_vector<double>(), (std::vector<double>{0, 2, 3.5, 4}));
}

TEST_P(HalfOf, GradientsComeInTheOperandsType) {
  Tensor w = low(tensor({1, 2, 3}));
  w.requires_grad(true);
  backward(sum(w * w));
  EXPECT_EQ(w.grad().dtype(), GetParam());
  EXPECT_TRUE(bit_equal(high(w.grad()), tensor({2, 4, 6})));
}

TEST_P(HalfOf, CastsFromAndToEveryType) {
  const Tensor x = low(tensor({-2.5, 0, 1, 3}));
  EXPECT_EQ(cast(x, DType::i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{-2, 0, 1, 3}));
  EXPECT_EQ(cast(x, DType::boolean).to_vector<unsigned char>(), (std::vector<unsigned char>{1, 0, 1, 1}));
  EXPECT_TRUE(bit_equal(cast(cast(x, DType::f64), GetParam()), x));
  EXPECT_TRUE(bit_equal(cast(cast(x, DType::i64), GetParam()), low(tensor({-2, 0, 1, 3}))));
  EXPECT_TRUE(bit_equal(cast(cast(x, DType::boolean), GetParam()), low(tensor({1, 0, 1, 1}))));
  EXPECT_EQ(scalar(1.5, GetParam()).item(), 1.5);
}

INSTANTIATE_TEST_SUITE_P(Types, HalfOf, ::testing::Values(DType::f16, DType::bf16),
                         [](const auto& info) { return dtype_name(info.param); });

}  // namespace
}  // namespace tapedeck
