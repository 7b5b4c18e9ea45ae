// Tests mathematical functions and bitwise ops as authors call them: promotion, defaults, special values, and error
// messages.
#include <tapedeck/engine/ops/bitwise.h>
#include <tapedeck/engine/ops/functions.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>
#include <functional>
#include <limits>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::kInf;
using testing::kNan;
using testing::message_of;
using testing::slope;
using testing::without_folders;

std::vector<int> bytes(const Tensor& t) {
  const std::vector<unsigned char> v = t.to_vector<unsigned char>();
  return {v.begin(), v.end()};
}
Tensor i32_row(const std::vector<std::int32_t>& v) { return from_vector(v, {static_cast<std::int64_t>(v.size())}); }
std::vector<std::int32_t> ints(const Tensor& t) { return t.to_vector<std::int32_t>(); }
Tensor bool_row(const std::vector<unsigned char>& v) {
  return from_bytes({DType::boolean, {static_cast<std::int64_t>(v.size())}}, v.data());
}

// The text of an error before the call site.
template <class F>
std::string complaint(F&& f) {
  const std::string text = without_folders(message_of<TypeError>(f));
  return text.substr(0, text.rfind(" (functions_test.cpp:"));
}

TEST(Functions, RoundingHalvesToEvenAndLeavesIntegers) {
  const Tensor x = tensor({-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 2.6f});
  EXPECT_EQ(floats_of(round(x)), (std::vector<float>{-2, -2, 0, 0, 2, 2, 3}));
  EXPECT_EQ(floats_of(floor(x)), (std::vector<float>{-3, -2, -1, 0, 1, 2, 2}));
  EXPECT_EQ(floats_of(ceil(x)), (std::vector<float>{-2, -1, 0, 1, 2, 3, 3}));
  EXPECT_EQ(floats_of(trunc(x)), (std::vector<float>{-2, -1, 0, 0, 1, 2, 2}));
  EXPECT_EQ(floats_of(frac(tensor({-2.5f, 1.25f, 3}))), (std::vector<float>{-0.5f, 0.25f, 0}));
  EXPECT_EQ(ints(round(i32_row({-3, 4}))), (std::vector<std::int32_t>{-3, 4}));
}

TEST(Functions, RoundingStopsTheGradientWithoutAnError) {
  Tensor x = tensor({1.25f, 2.75f});
  x.requires_grad(true);
  backward(sum(add(x, round(x))));
  EXPECT_EQ(floats_of(x.grad()), (std::vector<float>{1, 1}));
}

TEST(Functions, TestsOfNumbers) {
  const Tensor x = tensor({1, kNan, kInf, -kInf});
  EXPECT_EQ(bytes(isnan(x)), (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(bytes(isinf(x)), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(bytes(isfinite(x)), (std::vector<int>{1, 0, 0, 0}));
  EXPECT_EQ(bytes(isfinite(i32_row({1, 2}))), (std::vector<int>{1, 1}));
  EXPECT_EQ(complaint([&] { isnan(bool_row({1})); }), "[isnan] needs numbers, got bool[1]");
}

TEST(Functions, ClampOfFloatsAndIntegers) {
  EXPECT_EQ(floats_of(clamp(tensor({-2, 0.5f, 9}), 0, 1)), (std::vector<float>{0, 0.5f, 1}));
  EXPECT_EQ(floats_of(clamp(tensor({-2, 9}), 0)), (std::vector<float>{0, 9}));
  EXPECT_EQ(floats_of(clamp(tensor({-2, 9}), 5, 1)), (std::vector<float>{1, 1})) << "the upper bound wins";
  EXPECT_EQ(ints(clamp(i32_row({-5, 2, 300}), -1, 255)), (std::vector<std::int32_t>{-1, 2, 255}));
  EXPECT_EQ(ints(clamp(i32_row({-5, 2}))), (std::vector<std::int32_t>{-5, 2}));
  EXPECT_EQ(complaint([&] { clamp(i32_row({1}), 0.5, 2); }), "[clamp] bounds of i32[1] must be whole numbers, not 0.5 and 2");
  EXPECT_EQ(complaint([&] { clamp(tensor({1}), std::nan("")); }), "[clamp] a bound is NaN");
  EXPECT_EQ(complaint([&] { clamp(bool_row({1}), 0, 1); }), "[clamp] needs numbers, got bool[1]");
}

TEST(Functions, ClampPassesTheGradientInsideItsBounds) {
  Tensor x = tensor({-2, -1, 0, 1, 2});
  x.requires_grad(true);
  backward(sum(clamp(x, -1, 1)));
  EXPECT_EQ(floats_of(x.grad()), (std::vector<float>{0, 0, 1, 0, 0}));
  Tensor y = tensor({-2, 2});
  y.requires_grad(true);
  backward(sum(clamp(y, 0)));
  EXPECT_EQ(floats_of(y.grad()), (std::vector<float>{0, 1}));
}

// The gradient reads the result. The oracle compares the operand with the bounds, as elements of its type.
void expect_gradient_of_operand(DType dtype, double min, double max) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> points = {-inf,  -7,     -1,   -0.1f, -0.0f, 0,    0.0999f, 0.1f,          0.1001f,
                                     0.33f, 0.333f, 0.5f, 1,     5.99f, 6.0f, 7,       std::nanf(""), inf};
  const auto n = static_cast<std::int64_t>(points.size());
  const Tensor x = cast(from_vector(points, {n}), dtype);
  Tensor y = cast(from_vector(points, {n}), dtype);
  const Tensor dy = full({n}, 3, dtype);
  y.requires_grad(true);
  backward(sum(mul(clamp(y, min, max), dy)));
  Tensor inside = full(x.shape(), 1, DType::boolean);
  if (min != -inf) inside = logical_and(inside, greater(x, min));
  if (max != inf) inside = logical_and(inside, less(x, max));
  EXPECT_TRUE(bit_equal(y.grad(), where(inside, dy, 0))) << dtype_name(dtype) << " " << min << " " << max;
}

TEST(Functions, TheGradientOfClampFromItsResultIsThatFromItsOperand) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (double min : {-inf, -0.1, 0.0, 0.1, 0.333, 5.0})
      for (double max : {0.0, 0.1, 1.0 / 3, 6.0, inf}) expect_gradient_of_operand(dtype, min, max);
}

TEST(Functions, HardtanhPassesTheGradientBetweenItsBoundsOnly) {
  EXPECT_EQ(slope([](const Tensor& x) { return hardtanh(x); }, {-2, -1, 0, 1, 2}), (std::vector<float>{0, 0, 1, 0, 0}));
  EXPECT_EQ(slope([](const Tensor& x) { return relu6(x); }, {-1, 0, 3, 6, 7}), (std::vector<float>{0, 0, 1, 0, 0}));
}

TEST(Functions, CopysignHasNoSlopeAtZero) {
  const Tensor sign = tensor({1, -1, 1, -1, 1, -1});
  EXPECT_EQ(slope([&](const Tensor& x) { return copysign(x, sign); }, {0, 0, 2, 2, -2, -2}),
            (std::vector<float>{0, 0, 1, -1, -1, 1}));
}

TEST(Functions, AnglesHaveNoSlopeAtTheOrigin) {
  const Tensor zero = tensor({0, 0});
  EXPECT_EQ(slope([&](const Tensor& y) { return atan2(y, tensor({0, 2})); }, {0, 0}), (std::vector<float>{0, 0.5f}));
  EXPECT_EQ(slope([&](const Tensor& x) { return atan2(zero, x); }, {0, 2}), (std::vector<float>{0, 0}));
}

TEST(Functions, MishHasASlopeOfOneFarOut) {
  EXPECT_EQ(slope([](const Tensor& x) { return mish(x); }, {30, 1e20f, kInf}), (std::vector<float>{1, 1, 1}));
}

TEST(Functions, PowHasFiniteSlopesAtZero) {
  const Tensor exponents = tensor({0, 1, 2, 0, 0});
  EXPECT_EQ(slope([&](const Tensor& x) { return pow(x, exponents); }, {0, 0, 0, kInf, kNan}),
            (std::vector<float>{0, 1, 0, 0, 0}));
  const Tensor bases = tensor({0, 0, 1, kInf});
  EXPECT_EQ(slope([&](const Tensor& y) { return pow(bases, y); }, {0, 2, 3, 1}), (std::vector<float>{0, 0, 0, kInf}));
  EXPECT_EQ(slope([&](const Tensor& y) { return pow(tensor({0}), y); }, {-1}), (std::vector<float>{-kInf}));
}

TEST(Functions, TheSecondGradientOfPowIsFiniteAtZero) {
  Tensor x = tensor({0, 0, 0}), y = tensor({0, 1, 2});
  x.requires_grad(true), y.requires_grad(true);
  const std::vector<Tensor> first = gradients({pow(x, y)}, {x, y}, {.create_graph = true});
  EXPECT_EQ(floats_of(gradients({first[0]}, {x}, {.retain = true})[0]), (std::vector<float>{0, 0, 2}));
  EXPECT_EQ(floats_of(gradients({first[1]}, {y})[0]), (std::vector<float>{0, 0, 0}));
}

TEST(Functions, NanToNumFillsInTheExtremesOfTheType) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const Tensor x = tensor({kNan, kInf, -kInf, 2});
  EXPECT_EQ(floats_of(nan_to_num(x)), (std::vector<float>{0, kMost, -kMost, 2}));
  EXPECT_EQ(floats_of(nan_to_num(x, 7, 8, -9)), (std::vector<float>{7, 8, -9, 2}));
  Tensor y = tensor({kInf, 3});
  y.requires_grad(true);
  backward(sum(nan_to_num(y)));
  EXPECT_EQ(floats_of(y.grad()), (std::vector<float>{0, 1}));
  EXPECT_EQ(ints(nan_to_num(i32_row({4}))), (std::vector<std::int32_t>{4}));
}

TEST(Functions, RemaindersOfIntegersFollowTheirSign) {
  const Tensor a = i32_row({7, -7, 7, -7}), b = i32_row({3, 3, -3, -3});
  EXPECT_EQ(ints(remainder(a, b)), (std::vector<std::int32_t>{1, 2, -2, -1}));
  EXPECT_EQ(ints(fmod(a, b)), (std::vector<std::int32_t>{1, -1, 1, -1}));
  EXPECT_EQ(ints(floor_divide(a, b)), (std::vector<std::int32_t>{2, -3, -3, 2}));
  EXPECT_EQ(floats_of(remainder(tensor({5.5f, -5.5f}), 2)), (std::vector<float>{1.5f, 0.5f}));
  for (const auto& f : {remainder, fmod, floor_divide}) {
    const std::string text = message_of<ExecutionError>([&] { f(a, i32_row({1, 0, 1, 1})); });
    EXPECT_MENTIONS(text, "integer division by zero (0)");
  }
  EXPECT_EQ(complaint([&] { remainder(bool_row({1}), bool_row({1})); }), "[remainder] needs numbers, got bool[1]");
}

TEST(Functions, OperandsPromote) {
  EXPECT_EQ(atan2(tensor({1}), 1).item(), static_cast<float>(std::atan(1.0)));
  EXPECT_EQ(hypot(3.0, tensor({4})).item(), 5);
  const Tensor wide = from_bytes({DType::f64, {1}}, std::vector<double>{4}.data());
  EXPECT_EQ(hypot(tensor({3}), wide).type(), (Type{DType::f64, {1}}));
  EXPECT_EQ(remainder(i32_row({7}), 2.5).dtype(), DType::f32);
  EXPECT_EQ(copysign(tensor({3, -3}), -0.0).to_vector<float>(), (std::vector<float>{-3, -3}));
  EXPECT_EQ(complaint([&] { atan2(i32_row({1}), i32_row({1})); }), "[atan2] needs a floating type, got i32[1]");
  EXPECT_EQ(complaint([&] { erf(i32_row({1})); }), "[erf] needs a floating type, got i32[1]");
  EXPECT_EQ(complaint([&] { hypot(tensor({1, 2}), tensor({1, 2, 3})); }), "[hypot] shapes do not broadcast: f32[2] and f32[3]");
}

TEST(Functions, LerpMeetsItsEnds) {
  const Tensor a = tensor({1e8f, 2}), b = tensor({0.1f, 4});
  EXPECT_EQ(floats_of(lerp(a, b, 0)), floats_of(a));
  EXPECT_EQ(floats_of(lerp(a, b, 1)), floats_of(b));
  EXPECT_EQ(floats_of(lerp(2, tensor({4}), 0.25)), (std::vector<float>{2.5f}));
  const Tensor weights = from_bytes({DType::f64, {2}}, std::vector<double>{0.5, 0.25}.data());
  EXPECT_EQ(lerp(a, b, weights).dtype(), DType::f64);
  EXPECT_EQ(lerp(a, b, weights).to_vector<double>()[1], 2.5);
}

TEST(Functions, AddcmulScalesTheProduct) {
  EXPECT_EQ(floats_of(addcmul(tensor({1}), tensor({2}), tensor({3}))), (std::vector<float>{7}));
  EXPECT_EQ(floats_of(addcmul(tensor({1}), tensor({2}), tensor({3}), 0.5)), (std::vector<float>{4}));
}

TEST(Functions, IscloseIsRelativeToItsSecondOperand) {
  EXPECT_EQ(bytes(isclose(tensor({100, 110, kNan, kInf}), tensor({110, 100, kNan, kInf}), 0.095, 0)),
            (std::vector<int>{1, 0, 0, 1}));
  EXPECT_EQ(bytes(isclose(tensor({kNan}), tensor({kNan}), 0, 0, true)), (std::vector<int>{1}));
  EXPECT_EQ(bytes(isclose(i32_row({3, 5}), i32_row({4, 5}), 0, 1)), (std::vector<int>{1, 1}));
  EXPECT_EQ(complaint([&] { isclose(tensor({1}), 1, -1); }), "[isclose] tolerances must not be negative: rtol -1, atol 1e-08");
}

TEST(Functions, PolygammaCountsDerivativesOfDigamma) {
  const Tensor x = tensor({1});
  EXPECT_TRUE(bit_equal(polygamma(0, x), digamma(x)));
  EXPECT_FLOAT_EQ(static_cast<float>(polygamma(1, x).item()), 1.64493407f);
  EXPECT_EQ(complaint([&] { polygamma(-1, x); }), "[polygamma] n must be 1 to 20, not -1");
  EXPECT_EQ(complaint([&] { polygamma(21, x); }), "[polygamma] n must be 1 to 20, not 21");
}

TEST(Bitwise, CombinesIntegersAndBools) {
  const Tensor a = i32_row({12, -1}), b = i32_row({10, 7});
  EXPECT_EQ(ints(bitwise_and(a, b)), (std::vector<std::int32_t>{8, 7}));
  EXPECT_EQ(ints(bitwise_or(a, b)), (std::vector<std::int32_t>{14, -1}));
  EXPECT_EQ(ints(bitwise_xor(a, b)), (std::vector<std::int32_t>{6, -8}));
  EXPECT_EQ(ints(bitwise_not(a)), (std::vector<std::int32_t>{-13, 0}));
  const Tensor p = bool_row({0, 0, 1, 1}), q = bool_row({0, 1, 0, 1});
  EXPECT_EQ(bytes(bitwise_and(p, q)), (std::vector<int>{0, 0, 0, 1}));
  EXPECT_EQ(bytes(bitwise_or(p, q)), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(bytes(bitwise_xor(p, q)), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(bytes(logical_xor(p, q)), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(bytes(bitwise_not(p)), (std::vector<int>{1, 1, 0, 0}));
  EXPECT_EQ(complaint([&] { bitwise_and(tensor({1}), tensor({1})); }), "[bitwise_and] needs integers or bools, got f32[1]");
  EXPECT_EQ(complaint([&] { logical_xor(a, b); }), "[logical_xor] needs bools, got i32[2]");
}

TEST(Bitwise, ShiftsByAnyCountThatIsNotNegative) {
  EXPECT_EQ(ints(left_shift(i32_row({1, 3, 1}), i32_row({4, 31, 32}))),
            (std::vector<std::int32_t>{16, std::numeric_limits<std::int32_t>::lowest(), 0}));
  EXPECT_EQ(ints(right_shift(i32_row({-5, -5, 5}), i32_row({1, 40, 40}))), (std::vector<std::int32_t>{-3, -1, 0}));
  EXPECT_EQ(ints(left_shift(i32_row({3}), 2)), (std::vector<std::int32_t>{12}));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { left_shift(i32_row({1}), i32_row({-3})); }), "negative shift count (-3)");
  EXPECT_EQ(complaint([&] { left_shift(bool_row({1}), bool_row({1})); }), "[left_shift] needs integers, got bool[1]");
}

}  // namespace
}  // namespace tapedeck
