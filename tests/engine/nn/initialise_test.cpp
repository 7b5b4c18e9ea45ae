// Tests initialisers. The oracle computes bounds and deviations from the published formulas, and moments and products of the
// drawn values by plain loops. Seeds are fixed, and tolerances are five standard errors.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::message_of;

Tensor weight(const Shape& shape, const char* name = "w", DType dtype = DType::f32) {
  Tensor w = zeros(shape, dtype);
  w.name(name).requires_grad(true);
  return w;
}

struct DrawnMoments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

DrawnMoments drawn_moments_of(const Tensor& t) {
  const std::vector<double> x = cast(t.detach(), DType::f64).to_vector<double>();
  DrawnMoments m{0, 0, x[0], x[0]};
  for (double v : x) m.mean += v / static_cast<double>(x.size());
  for (double v : x) m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(x.size());
  m.deviation = std::sqrt(m.deviation);
  m.least = *std::min_element(x.begin(), x.end());
  m.most = *std::max_element(x.begin(), x.end());
  return m;
}

// Uniform in +-bound: the mean is 0, the deviation bound / sqrt(3), and the extremes are near the bound.
void expect_uniform(const Tensor& t, double bound) {
  const DrawnMoments m = drawn_moments_of(t);
  const double n = static_cast<double>(t.numel()), deviation = bound / std::sqrt(3.0);
  EXPECT_NEAR(m.mean, 0, 5 * deviation / std::sqrt(n));
  EXPECT_NEAR(m.deviation, deviation, 5 * deviation / std::sqrt(5 * n));
  EXPECT_GE(m.least, -bound * (1 + 1e-6));
  EXPECT_LE(m.most, bound * (1 + 1e-6));
  EXPECT_LT(m.least, -bound * (1 - 30 / n));
  EXPECT_GT(m.most, bound * (1 - 30 / n));
}

void expect_normal(const Tensor& t, double deviation) {
  const DrawnMoments m = drawn_moments_of(t);
  const double n = static_cast<double>(t.numel());
  EXPECT_NEAR(m.mean, 0, 5 * deviation / std::sqrt(n));
  EXPECT_NEAR(m.deviation, deviation, 5 * deviation / std::sqrt(2 * n));
  EXPECT_GT(m.most, 2.5 * deviation);
}

TEST(Initialise, XavierFollowsBothFans) {
  manual_seed(1);
  expect_uniform(xavier_uniform_(weight({60, 100})), std::sqrt(6.0 / 160));
  expect_uniform(xavier_uniform_(weight({60, 100}), 3), 3 * std::sqrt(6.0 / 160));
  expect_normal(xavier_normal_(weight({60, 100})), std::sqrt(2.0 / 160));
  expect_normal(xavier_normal_(weight({40, 10, 3, 5}), 2), 2 * std::sqrt(2.0 / (50 * 15)));
}

TEST(Initialise, KaimingFollowsOneFan) {
  manual_seed(2);
  expect_uniform(kaiming_uniform_(weight({60, 100})), std::sqrt(2.0) * std::sqrt(3.0 / 60));
  expect_uniform(kaiming_uniform_(weight({60, 100}), {.mode = Fan::out}), std::sqrt(2.0) * std::sqrt(3.0 / 100));
  // Linear layers of PyTorch begin with slope sqrt(5), which is 1/sqrt(fan_in).
  expect_uniform(kaiming_uniform_(weight({60, 100}), {.slope = std::sqrt(5.0)}), 1 / std::sqrt(60.0));
  expect_normal(kaiming_normal_(weight({40, 10, 3, 5}), {.nonlinearity = Nonlinearity::tanh}), 5.0 / 3 / std::sqrt(150.0));
  expect_normal(kaiming_normal_(weight({40, 10, 3, 5}), {.mode = Fan::out, .nonlinearity = Nonlinearity::relu}),
                std::sqrt(2.0 / 600));
}

TEST(Initialise, GainsAreTheTableOfPyTorch) {
  EXPECT_EQ(gain_of(Nonlinearity::linear), 1);
  EXPECT_EQ(gain_of(Nonlinearity::sigmoid), 1);
  EXPECT_DOUBLE_EQ(gain_of(Nonlinearity::tanh), 1.6666666666666667);
  EXPECT_DOUBLE_EQ(gain_of(Nonlinearity::relu), 1.4142135623730951);
  EXPECT_DOUBLE_EQ(gain_of(Nonlinearity::leaky_relu), 1.4141428569978354);
  EXPECT_DOUBLE_EQ(gain_of(Nonlinearity::leaky_relu, 2), 0.63245553203367588);
  EXPECT_EQ(gain_of(Nonlinearity::selu), 0.75);
}

// rows v_i of length `length` with products gain^2 [i == j]
void expect_orthogonal(const std::vector<double>& m, std::size_t rows, std::size_t columns, double gain, double tolerance) {
  const bool by_rows = rows <= columns;
  const std::size_t count = std::min(rows, columns), length = std::max(rows, columns);
  const auto at = [&](std::size_t k, std::size_t i) { return by_rows ? m[k * columns + i] : m[i * columns + k]; };
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b) {
      double product = 0;
      for (std::size_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
      EXPECT_NEAR(product, a == b ? gain * gain : 0, tolerance) << a << " and " << b;
    }
}

TEST(Initialise, OrthogonalRowsOrColumns) {
  manual_seed(3);
  for (const Shape& shape : {Shape{8, 8}, Shape{5, 12}, Shape{12, 5}, Shape{4, 2, 3}, Shape{1, 1}, Shape{20, 2, 3}}) {
    const Tensor w = orthogonal_(weight(shape), 1.5);
    const auto rows = static_cast<std::size_t>(shape[0]), all = static_cast<std::size_t>(shape.numel());
    const std::vector<double> m = cast(w.detach(), DType::f64).to_vector<double>();
    expect_orthogonal(m, rows, all / rows, 1.5, 1e-6);
  }
  const Tensor fine = orthogonal_(weight({30, 20}, "w", DType::f64));
  expect_orthogonal(fine.to_vector<double>(), 30, 20, 1, 1e-14);
  orthogonal_(weight({3, 0}));
}

// The sign of a drawn vector stays, so the determinants of square matrices have both signs.
TEST(Initialise, OrthogonalMatricesTurnAndReflect) {
  manual_seed(4);
  int turns = 0;
  for (int i = 0; i < 40; ++i) {
    const std::vector<double> m = cast(orthogonal_(weight({2, 2})).detach(), DType::f64).to_vector<double>();
    turns += m[0] * m[3] - m[1] * m[2] > 0;
  }
  EXPECT_GT(turns, 8);
  EXPECT_LT(turns, 32);
}

TEST(Initialise, TruncatedNormalStaysInside) {
  manual_seed(5);
  const DrawnMoments m = drawn_moments_of(truncated_normal_(weight({100, 100})));
  EXPECT_GE(m.least, -2);
  EXPECT_LE(m.most, 2);
  EXPECT_NEAR(m.mean, 0, 5 * 0.88 / 100);
  EXPECT_NEAR(m.deviation, 0.8796256610342398, 5 * 0.88 / 100) << "of a standard normal cut off at two deviations";
  const DrawnMoments small = drawn_moments_of(truncated_normal_(weight({100}), 1, 0.02, 0.98, 1.01));
  EXPECT_GE(small.least, 0.98f);
  EXPECT_LE(small.most, 1.01f);
}

TEST(Initialise, FollowsTheSeedAndTheNameAlone) {
  const auto draw = [](bool other_first) {
    manual_seed(6);
    const Tensor a = weight({3, 4}, "a"), b = weight({3, 4}, "b");
    if (other_first) xavier_normal_(b);
    xavier_normal_(a);
    orthogonal_(b);
    return std::vector<Tensor>{a, b};
  };
  const auto first = draw(false), second = draw(false), third = draw(true);
  EXPECT_TRUE(bit_equal(first[0], second[0]));
  EXPECT_TRUE(bit_equal(first[1], second[1]));
  EXPECT_TRUE(bit_equal(first[0], third[0])) << "draws of another tensor change nothing";
  EXPECT_FALSE(bit_equal(first[1], third[1])) << "a second call draws other values";
  EXPECT_FALSE(bit_equal(first[0], first[1]));
}

TEST(Initialise, KeepsTheTensorAndItsDtype) {
  Tensor w = weight({4, 4}, "w", DType::f16);
  const Tensor same = kaiming_normal_(w);
  EXPECT_EQ(same.impl(), w.impl());
  EXPECT_EQ(w.dtype(), DType::f16);
  EXPECT_TRUE(w.requires_grad());
  EXPECT_NE(w.to_vector<std::uint16_t>(), std::vector<std::uint16_t>(16, 0));
  backward(sum(cast(w, DType::f32)));
  EXPECT_TRUE(w.grad().defined()) << "the tensor is still a leaf";
}

TEST(Initialise, MistakesNameTheCall) {
  const Tensor vector = zeros({3}), integers = zeros({3, 3}, DType::i32);
  EXPECT_MENTIONS(message_of<TypeError>([&] { xavier_uniform_(vector); }),
                  "[xavier_uniform_] f32[3] has no fan: a weight has at least two dimensions (");
  EXPECT_MENTIONS(message_of<TypeError>([&] { orthogonal_(vector); }), "[orthogonal_] f32[3] has no fan");
  EXPECT_MENTIONS(message_of<TypeError>([&] { kaiming_normal_(integers); }), "[kaiming_normal_] i32[3,3] holds integers");
  EXPECT_MENTIONS(message_of<TypeError>([&] { truncated_normal_(Tensor()); }), "[truncated_normal_] the tensor is undefined");
  EXPECT_MENTIONS(message_of<TypeError>([&] { truncated_normal_(zeros({2}), 0, 1, 2, 1); }), "low must be below high");
}

}  // namespace
}  // namespace tapedeck
