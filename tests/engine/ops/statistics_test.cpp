// Tests statistics over axes as authors call them: values from the definitions, special cases, and every message.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/statistics.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>
#include <limits>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::kInf;
using testing::message_of;

using Floats = std::vector<float>;

Tensor gradient(Tensor& x, const Tensor& loss) {
  backward(loss);
  return x.grad();
}

TEST(Statistics, ProductOfAllOrOfSomeAxes) {
  const Tensor x = from_vector(Floats{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(prod(x).item(), 720);
  EXPECT_EQ(floats_of(prod(x, {-1})), (Floats{6, 120}));
  EXPECT_EQ(prod(x, {0}, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(prod(from_vector(Floats{}, {0})).item(), 1);
  EXPECT_EQ(prod(from_vector(std::vector<std::int32_t>{2, 3, 7}, {3})).dtype(), DType::i32);
}

// d(abc)/da = bc, whichever of the factors is zero.
TEST(Statistics, GradientOfAProductWithZeros) {
  Tensor one = tensor({2, 0, 3}), two = tensor({0, 5, 0});
  one.requires_grad(true);
  two.requires_grad(true);
  EXPECT_EQ(floats_of(gradient(one, prod(one))), (Floats{0, 6, 0}));
  EXPECT_EQ(floats_of(gradient(two, prod(two))), (Floats{0, 0, 0}));
}

TEST(Statistics, TruthOfNumbersAndBools) {
  const Tensor x = from_vector(Floats{0, 0, 0, 1, std::nanf(""), -2}, {2, 3});
  EXPECT_EQ(any(x, {1}).to_vector<unsigned char>(), (std::vector<unsigned char>{0, 1}));
  EXPECT_EQ(all(x, {1}).to_vector<unsigned char>(), (std::vector<unsigned char>{0, 1}));
  EXPECT_EQ(count_nonzero(x, {0}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_EQ(count_nonzero(x).dtype(), DType::i64);
  EXPECT_EQ(any(greater(x, 100)).item(), 0);
  EXPECT_EQ(all(zeros({0})).item(), 1);
  EXPECT_EQ(any(zeros({0})).item(), 0);
}

TEST(Statistics, CountsLongSequences) {
  EXPECT_EQ(count_nonzero(ones({300000}, DType::u8)).item(), 300000);
  EXPECT_EQ(count_nonzero(ones({300, 70}, DType::boolean), {0}).to_vector<std::int64_t>(), std::vector<std::int64_t>(70, 300));
}

// The numbers 1 2 3 4 have mean 2.5 and a sum of squared distances of 5.
TEST(Statistics, VarianceDividesByCountLessCorrection) {
  const Tensor x = tensor({1, 2, 3, 4});
  EXPECT_FLOAT_EQ(static_cast<float>(var(x).item()), 5.0f / 3);
  EXPECT_FLOAT_EQ(static_cast<float>(var(x, {}, false, 0).item()), 1.25f);
  EXPECT_FLOAT_EQ(static_cast<float>(std(x, {0}, true, 0).item()), std::sqrt(1.25f));
  EXPECT_TRUE(std::isnan(var(tensor({7})).item()));
  EXPECT_EQ(var(tensor({7}), {}, false, 0).item(), 0);
}

TEST(Statistics, VarianceOfNumbersFarFromZero) { EXPECT_EQ(var(tensor({16777216, 16777218, 16777220})).item(), 4); }

TEST(Statistics, DeviationsWhoseSquaresOverflowOrVanish) {
  EXPECT_EQ(std(tensor({1e30f, -1e30f}), {}, false, 0).item(), 1e30f);
  EXPECT_EQ(std(tensor({1e-30f, -1e-30f}), {}, false, 0).item(), 1e-30f);
}

TEST(Statistics, GradientOfTheDeviationOfEqualNumbersIsZero) {
  Tensor x = tensor({3, 3, 3});
  x.requires_grad(true);
  EXPECT_EQ(floats_of(gradient(x, std(x))), (Floats{0, 0, 0}));
}

TEST(Statistics, LogSumExpNeitherOverflowsNorVanishes) {
  EXPECT_FLOAT_EQ(static_cast<float>(logsumexp(tensor({1000, 1000})).item()), 1000 + std::log(2.0f));
  EXPECT_FLOAT_EQ(static_cast<float>(logsumexp(tensor({-1000, -1000})).item()), -1000 + std::log(2.0f));
  const auto inf = static_cast<float>(kInf);
  EXPECT_EQ(logsumexp(tensor({-inf, -inf})).item(), -kInf);
  EXPECT_EQ(logsumexp(tensor({inf, 0})).item(), kInf);
  EXPECT_EQ(logsumexp(zeros({0})).item(), -kInf);
  EXPECT_TRUE(std::isnan(logsumexp(tensor({NAN, 0})).item()));
}

TEST(Statistics, GradientOfLogSumExpIsSoftmaxAndZeroForMaskedElements) {
  Tensor x = from_vector(Floats{0, -INFINITY, 0, -INFINITY, -INFINITY, -INFINITY}, {2, 3});
  x.requires_grad(true);
  EXPECT_EQ(floats_of(gradient(x, sum(logsumexp(x, {1})))), (Floats{0.5f, 0, 0.5f, 0, 0, 0}));
}

TEST(Statistics, NormsOfThreeAndFour) {
  const Tensor x = tensor({3, -4, 0});
  EXPECT_EQ(norm(x).item(), 5);
  EXPECT_EQ(norm(x, 1).item(), 7);
  EXPECT_EQ(norm(x, kInf).item(), 4);
  EXPECT_EQ(norm(x, -kInf).item(), 0);
  EXPECT_EQ(norm(x, 0).item(), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(norm(x, 3).item()), std::cbrt(91.0f));
  EXPECT_EQ(norm(from_vector(Floats{3, 4, 6, 8}, {2, 2}), 2, {1}, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(norm(tensor({3e30f, 4e30f})).item(), 5e30f);
}

TEST(Statistics, GradientOfANormAtZeroIsZero) {
  for (double p : {0.0, 1.0, 1.5, 2.0, 3.0}) {
    Tensor x = tensor({0, 0});
    x.requires_grad(true);
    EXPECT_EQ(floats_of(gradient(x, norm(x, p))), (Floats{0, 0})) << p;
  }
}

TEST(Statistics, EqualExtremesShareTheGradientOfTheMaximumNorm) {
  Tensor x = tensor({-4, 1, 4});
  x.requires_grad(true);
  EXPECT_EQ(floats_of(gradient(x, norm(x, kInf))), (Floats{-0.5f, 0, 0.5f}));
}

TEST(Statistics, ArgminIsTheFirstOfEqualsAndOfNaN) {
  EXPECT_EQ(argmin(tensor({3, 1, 1})).item(), 1);
  EXPECT_EQ(argmin(tensor({3, NAN, 1, NAN})).item(), 1);
  EXPECT_EQ(argmin(from_vector(Floats{3, 1, 2, 0}, {2, 2}), 0).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 1}));
}

TEST(Statistics, MistakesAreRefused) {
  const Tensor x = zeros({3, 5}), whole = zeros({3}, DType::i32), empty = zeros({3, 0});
  auto says = [](auto&& f, const char* message) { EXPECT_MENTIONS(message_of<TypeError>(f), message); };
  says([&] { prod(x, {2}); }, "[prod] axis 2 is outside f32[3,5]");
  says([&] { prod(zeros({3}, DType::boolean)); }, "[prod] needs numbers, got bool[3]");
  says([&] { any(x, {0, 0}); }, "[any] axes must ascend and not repeat");
  says([&] { var(whole); }, "[var] needs a floating type, got i32[3]");
  says([&] { var(x, {}, false, -1); }, "[var] correction must be a number of at least 0");
  says([&] { std(Tensor()); }, "[std] the operand is undefined");
  says([&] { logsumexp(whole); }, "[logsumexp] needs a floating type, got i32[3]");
  says([&] { norm(x, std::nan("")); }, "[norm] p must be a number");
  says([&] { norm(empty, kInf, {1}); }, "[norm] no extreme of an empty range of f32[3,0]");
  says([&] { argmin(empty); }, "[argmin] no smallest element along an empty axis of f32[3,0]");
  says([&] { argmin(x, 4); }, "[argmin] axis 4 is outside f32[3,5]");
}

}  // namespace
}  // namespace tapedeck
