// Tests random ops as authors call them: ranges, moments, masks that backward draws again, and every refused call.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/dropout.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/mistakes.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tapedeck {
namespace {

using testing::expect_mistakes;
using testing::message_of;
using testing::Mistake;

struct Moments {
  double mean = 0, variance = 0, low = 1e300, high = -1e300;
  explicit Moments(const Tensor& t) {
    const std::vector<double> v = cast(t, DType::f64).to_vector<double>();
    for (double x : v) mean += x / static_cast<double>(v.size()), low = std::min(low, x), high = std::max(high, x);
    for (double x : v) variance += (x - mean) * (x - mean) / static_cast<double>(v.size());
  }
};

TEST(Random, IntegersFillTheirRangeEvenly) {
  manual_seed(1);
  std::map<std::int64_t, int> count;
  for (std::int64_t v : randint(-2, 3, {50000}).to_vector<std::int64_t>()) ++count[v];
  ASSERT_EQ(count.size(), 5u);
  EXPECT_EQ(count.begin()->first, -2);
  for (const auto& [value, n] : count) EXPECT_NEAR(n, 10000, 450) << value;  // five standard deviations of 89
  const std::vector<std::int64_t> wide = randint(INT64_MIN, INT64_MAX, {1000}).to_vector<std::int64_t>();
  EXPECT_NEAR(static_cast<double>(std::count_if(wide.begin(), wide.end(), [](std::int64_t v) { return v < 0; })), 500, 80);
  EXPECT_EQ(randint(7, 8, {3}, DType::u8).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{7, 7, 7}));
}

TEST(Random, PermutationsHoldEveryNumberOnce) {
  manual_seed(1);
  const std::vector<std::int64_t> p = randperm(1000).to_vector<std::int64_t>(), q = randperm(1000).to_vector<std::int64_t>();
  EXPECT_EQ(std::set<std::int64_t>(p.begin(), p.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(p.begin(), p.end()), 999);
  EXPECT_NE(p, q);
  EXPECT_EQ(randperm(1, DType::i32).to_vector<std::int32_t>(), std::vector<std::int32_t>{0});
  std::map<std::vector<std::int64_t>, int> count;
  for (int i = 0; i < 6000; ++i) ++count[randperm(3).to_vector<std::int64_t>()];
  ASSERT_EQ(count.size(), 6u);
  for (const auto& [order, n] : count) EXPECT_NEAR(n, 1000, 150);
}

TEST(Random, BernoulliHoldsWithItsProbability) {
  manual_seed(1);
  EXPECT_NEAR(Moments(bernoulli({100000}, 0.3)).mean, 0.3, 0.008);
  const Tensor p = tensor({0, 1, 0, 1});
  EXPECT_EQ(bernoulli(p).to_vector<float>(), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(bernoulli({3}, 1, DType::f64).dtype(), DType::f64);
  EXPECT_MENTIONS(message_of<ExecutionError>([] {
                    bernoulli(tensor({0.5, -0.1f}));
                  }),
                  "[bernoulli] not a probability, at element (1)");
  EXPECT_MENTIONS(message_of<ExecutionError>([] { bernoulli(tensor({NAN})); }), "not a probability");
}

TEST(Random, TruncatedNormalKeepsItsBoundsAndMoments) {
  manual_seed(1);
  const Moments m(trunc_normal({200000}, 0, 1, -2, 2));
  EXPECT_GE(m.low, -2);
  EXPECT_LE(m.high, 2);
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.variance, 0.7737413, 0.01);  // the formula is 1 - 4 phi(2) / (2 Phi(2) - 1)
  const Moments tail(trunc_normal({50000}, 0, 1, 6, 7, DType::f64));
  EXPECT_GE(tail.low, 6);
  EXPECT_LE(tail.high, 7);
  EXPECT_NEAR(tail.mean, 6.158, 0.005);  // most of the mass is near the lower bound
}

TEST(Random, ExponentialAndGumbelHaveTheirMoments) {
  manual_seed(1);
  const Moments e(exponential({200000}, 2)), g(gumbel({200000}));
  EXPECT_GE(e.low, 0);
  EXPECT_NEAR(e.mean, 0.5, 0.01);
  EXPECT_NEAR(e.variance, 0.25, 0.02);
  EXPECT_TRUE(std::isfinite(g.low) && std::isfinite(g.high));
  EXPECT_NEAR(g.mean, 0.5772157, 0.02);
  EXPECT_NEAR(g.variance, M_PI * M_PI / 6, 0.05);
}

TEST(Random, LikesTakeTheTypeOfTheirOperand) {
  const Tensor x = zeros({3, 4}, DType::f64);
  EXPECT_EQ(rand_like(x).type(), x.type());
  EXPECT_EQ(randn_like(x).type(), x.type());
}

TEST(Random, MultinomialDrawsInProportion) {
  manual_seed(1);
  const Tensor p = from_vector(std::vector<float>{1, 0, 3, 0, 2, 2}, {2, 3});
  std::map<std::int64_t, int> first, second;
  const std::vector<std::int64_t> drawn = multinomial(p, 40000, true).to_vector<std::int64_t>();
  for (std::size_t i = 0; i < 40000; ++i) ++first[drawn[i]], ++second[drawn[40000 + i]];
  EXPECT_EQ(first.count(1), 0u);
  EXPECT_EQ(second.count(0), 0u);
  EXPECT_NEAR(first[2], 30000, 450);
  EXPECT_NEAR(second[1], 20000, 500);
}

TEST(Random, MultinomialWithoutReplacementDrawsNothingTwice) {
  manual_seed(1);
  const Tensor p = tensor({1, 2, 0, 3});
  int two_first = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::vector<std::int64_t> drawn = multinomial(p, 3).to_vector<std::int64_t>();
    EXPECT_EQ(std::set<std::int64_t>(drawn.begin(), drawn.end()), (std::set<std::int64_t>{0, 1, 3}));
    two_first += drawn[0] == 1;
  }
  EXPECT_NEAR(two_first, 1000, 130);
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { multinomial(p, 4); }),
                  "[multinomial] too few classes of nonzero probability for samples without replacement (4)");
  EXPECT_MENTIONS(message_of<ExecutionError>([] {
                    multinomial(tensor({0, 0}), 1);
                  }),
                  "[multinomial] probabilities add to zero, in row (0)");
  EXPECT_MENTIONS(message_of<ExecutionError>([] {
                    multinomial(tensor({1, -1}), 1);
                  }),
                  "[multinomial] probability negative or not finite, of class (1)");
}

TEST(Random, ChannelsDropTogether) {
  manual_seed(1);
  Tensor x = ones({20, 50, 3, 2});
  x.requires_grad(true);
  const Tensor y = dropout2d(x, 0.25);
  EXPECT_EQ(tape_stats().saved_bytes, 20 * 50 * 4) << "a number a channel";
  const std::vector<float> v = y.to_vector<float>();
  int dropped = 0;
  for (std::size_t c = 0; c < 1000; ++c) {
    for (std::size_t i = 1; i < 6; ++i) ASSERT_EQ(v[c * 6 + i], v[c * 6]);
    ASSERT_TRUE(v[c * 6] == 0 || v[c * 6] == 1 / 0.75f);
    dropped += v[c * 6] == 0;
  }
  EXPECT_NEAR(dropped, 250, 70);
  backward(sum(y));
  EXPECT_TRUE(bit_equal(x.grad(), y));
}

TEST(Random, AlphaDropoutKeepsMeanAndDeviationAndNoMask) {
  manual_seed(1);
  Tensor x = normal({200000});
  x.requires_grad(true);
  const Tensor y = alpha_dropout(x, 0.2);
  EXPECT_EQ(tape_stats().saved_bytes, rng_state().bytes());
  const Moments m(y.detach());
  EXPECT_NEAR(m.mean, 0, 0.015);
  EXPECT_NEAR(m.variance, 1, 0.02);
  backward(sum(y));
  const std::vector<float> g = x.grad().to_vector<float>();
  EXPECT_NEAR(static_cast<double>(std::count(g.begin(), g.end(), 0.0f)) / 2e5, 0.2, 0.006);
}

struct Layers : Module {
  Dropout2d channels{*this, "channels", 0.5};
  AlphaDropout alpha{*this, "alpha", 0.5};
};

TEST(Random, LayersRestOutsideTraining) {
  Layers layers;
  const Tensor x = ones({4, 100, 2});
  EXPECT_FALSE(bit_equal(layers.channels(x), x));
  EXPECT_FALSE(bit_equal(layers.alpha(x), x));
  layers.train(false);
  EXPECT_TRUE(bit_equal(layers.channels(x), x));
  EXPECT_TRUE(bit_equal(layers.alpha(x), x));
}

const Mistake kRandomOpsMistakes[] = {
    MISTAKE("[randint] no integers in [3, 3)", randint(3, 3, {2})),
    MISTAKE("[randint] u8 does not hold the integers in [0, 257)", randint(0, 257, {2}, DType::u8)),
    MISTAKE("[randint] f32 does not hold the integers in [0, 2)", randint(0, 2, {2}, DType::f32)),
    MISTAKE("[randint] bad shape", randint(0, 2, {1 << 30, 1 << 30})),
    MISTAKE("[randperm] n must not be negative", randperm(-1)),
    MISTAKE("[randperm] u8 does not hold the integers in [0, 5)", randperm(5, DType::u8)),
    MISTAKE("[trunc_normal] low must be below high", trunc_normal({2}, 0, 1, 1, 1)),
    MISTAKE("[trunc_normal] the deviation must be above 0", trunc_normal({2}, 0, 0)),
    MISTAKE("[trunc_normal] draws floating types, not i32", trunc_normal({2}, 0, 1, -2, 2, DType::i32)),
    MISTAKE("[exponential] the rate must be above 0", exponential({2}, 0)),
    MISTAKE("[bernoulli] needs a floating type, got i32[2]", bernoulli(zeros({2}, DType::i32))),
    MISTAKE("[multinomial] probabilities must be [c] or [n,c], got f32[]", multinomial(scalar(1), 1)),
    MISTAKE("[multinomial] no classes in f32[2,0]", multinomial(zeros({2, 0}), 0)),
    MISTAKE("[multinomial] cannot take 3 samples of 2 classes without replacement", multinomial(ones({2}), 3)),
    MISTAKE("[multinomial] samples must not be negative", multinomial(ones({2}), -1)),
    MISTAKE("[dropout2d] needs at least two dimensions, got f32[3]", dropout2d(ones({3}), 0.5)),
    MISTAKE("[dropout] p must be at least 0 and below 1", dropout2d(ones({3, 2}), 1)),
    MISTAKE("[alpha_dropout] p must be at least 0 and below 1", alpha_dropout(ones({3}), 1)),
    MISTAKE("[rand_like] the operand is undefined", rand_like(Tensor())),
};

TEST(RandomErrors, NameTheOpTheTypesAndTheLine) { expect_mistakes(kRandomOpsMistakes, "random_ops_test.cpp"); }

}  // namespace
}  // namespace tapedeck
