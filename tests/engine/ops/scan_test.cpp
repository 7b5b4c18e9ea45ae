// Tests scans (running sums, products, extremes) as authors call them. Expected values are worked out by hand.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/scan.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::message_of;
using Floats = std::vector<float>;
using Places = std::vector<std::int64_t>;

TEST(Scan, RunningSumInBothDirectionsWithAndWithoutTheElement) {
  const Tensor x = tensor({1, 2, 3});
  EXPECT_EQ(floats_of(cumsum(x)), (Floats{1, 3, 6}));
  EXPECT_EQ(floats_of(cumsum(x, 0, {.exclusive = true})), (Floats{0, 1, 3}));
  EXPECT_EQ(floats_of(cumsum(x, 0, {.reverse = true})), (Floats{6, 5, 3}));
  EXPECT_EQ(floats_of(cumsum(x, 0, {.exclusive = true, .reverse = true})), (Floats{5, 3, 0}));
}

TEST(Scan, ALongSumOfTenthsKeepsItsDigits) {
  constexpr std::int64_t kCount = 10'000'000;
  const Tensor line = cumsum(full({kCount}, 0.1));
  EXPECT_FLOAT_EQ(floats_of(line).back(), 1e6f);
  const Tensor lines = cumsum(full({kCount / 4, 4}, 0.1), 0);  // neighbouring lines walk together
  EXPECT_FLOAT_EQ(floats_of(lines).back(), 2.5e5f);
}

TEST(Scan, AlongTheFirstAxis) {
  const Tensor x = from_vector(Floats{1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_EQ(floats_of(cumsum(x, 0)), (Floats{1, 2, 4, 6, 9, 12}));
  EXPECT_EQ(floats_of(cumprod(x, 0)), (Floats{1, 2, 3, 8, 15, 48}));
}

TEST(Scan, BoolsAreCounted) {
  const Tensor held = greater(tensor({1, -1, 1, 1}), 0);
  EXPECT_EQ(cumsum(held).to_vector<std::int64_t>(), (Places{1, 1, 2, 3}));
}

// The sum of y = (a, ab, abc) has d/da = 1 + b + bc, d/db = a + ac, d/dc = ab.
TEST(Scan, GradientOfARunningProductWithAZero) {
  Tensor x = tensor({2, 0, 3});
  x.requires_grad(true);
  backward(sum(cumprod(x)));
  EXPECT_EQ(floats_of(x.grad()), (Floats{1, 8, 0}));
}

// y0 = b0, y1 = b1 + a1 y0, y2 = b2 + a2 y1. The result does not depend on a0, even if a0 is infinite.
TEST(Scan, LinearRecurrence) {
  const Tensor a = tensor({INFINITY, 2, 3}), b = tensor({1, 10, 100});
  EXPECT_EQ(floats_of(linear_scan(a, b)), (Floats{1, 12, 136}));
  EXPECT_EQ(floats_of(linear_scan(tensor({2, 3, INFINITY}), b, 0, true)), (Floats{621, 310, 100}));
}

TEST(Scan, RunningLogSumExpOfFarApartNumbers) {
  const Floats y = floats_of(logcumsumexp(tensor({-INFINITY, -1000, 1000, 1000})));
  EXPECT_EQ(y[0], -INFINITY);
  EXPECT_EQ(y[1], -1000);
  EXPECT_EQ(y[2], 1000);
  EXPECT_FLOAT_EQ(y[3], 1000 + std::log(2.0f));
}

// The gradient of log(e^a + e^b) is the share of e^a and of e^b in the sum.
TEST(Scan, GradientOfTheRunningLogSumExp) {
  Tensor x = tensor({-INFINITY, 500, 500});
  x.requires_grad(true);
  backward(logcumsumexp(x), {.head = tensor({0, 0, 1})});
  const Floats shares = floats_of(x.grad());
  EXPECT_EQ(shares[0], 0);
  EXPECT_NEAR(shares[1], 0.5, 1e-5);
  EXPECT_NEAR(shares[2], 0.5, 1e-5);
}

TEST(Scan, RunningExtremesAndTheirPlaces) {
  const Tensor x = tensor({1, 3, 3, 2, 5});
  const auto [high, high_at] = cummax(x);
  EXPECT_EQ(floats_of(high), (Floats{1, 3, 3, 3, 5}));
  EXPECT_EQ(high_at.to_vector<std::int64_t>(), (Places{0, 1, 2, 2, 4}));
  const auto [low, low_at] = cummin(neg(x));
  EXPECT_EQ(floats_of(low), (Floats{-1, -3, -3, -3, -5}));
  EXPECT_EQ(low_at.to_vector<std::int64_t>(), (Places{0, 1, 2, 2, 4}));
}

TEST(Scan, ANaNStaysTheExtreme) {
  const auto [values, places] = cummax(tensor({1, NAN, 7}));
  EXPECT_TRUE(std::isnan(floats_of(values)[2]));
  EXPECT_EQ(places.to_vector<std::int64_t>(), (Places{0, 1, 1}));
}

TEST(Scan, OfSeveralNaNsTheLatestIsTheExtreme) {
  EXPECT_EQ(cummax(tensor({1, NAN, 7, NAN, 2})).second.to_vector<std::int64_t>(), (Places{0, 1, 1, 3, 3}));
  EXPECT_EQ(cummin(tensor({NAN, 1, NAN, -7})).second.to_vector<std::int64_t>(), (Places{0, 0, 2, 2}));
}

TEST(Scan, GradientOfARunningMaximumGoesToItsPlace) {
  Tensor x = tensor({1, 3, 2});
  x.requires_grad(true);
  backward(cummax(x).first, {.head = tensor({1, 10, 100})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{1, 110, 0}));
}

TEST(Scan, MistakesAreRefused) {
  const Tensor x = zeros({3, 5});
  auto says = [](auto&& f, const char* message) { EXPECT_MENTIONS(message_of<TypeError>(f), message); };
  says([&] { cumsum(x, 2); }, "[cumsum] axis 2 is outside f32[3,5]");
  says([&] { cumsum(scalar(1), 1); }, "[cumsum] axis 1 is outside f32[]");
  says([&] { cumprod(Tensor()); }, "[cumprod] the operand is undefined");
  says([&] { linear_scan(x, zeros({3, 4})); }, "[linear_scan] operands differ in type: f32[3,5] and f32[3,4]");
  says([&] { logcumsumexp(zeros({3}, DType::i32)); }, "[logcumsumexp] needs a floating type, got i32[3]");
  says([&] { cummax(zeros({3}, DType::boolean)); }, "[cummax] needs numbers, got bool[3]");
}

}  // namespace
}  // namespace tapedeck
