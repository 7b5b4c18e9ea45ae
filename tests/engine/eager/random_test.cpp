// Tests random ops as users see them: seeds, random steps and paths decide the numbers.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <thread>

namespace tapedeck {
namespace {

TEST(Random, EqualSeedsDrawEqualBits) {
  manual_seed(7);
  const Tensor a = normal({100}), b = normal({100});
  manual_seed(7);
  EXPECT_TRUE(bit_equal(normal({100}), a));
  EXPECT_TRUE(bit_equal(normal({100}), b));
  EXPECT_FALSE(bit_equal(a, b));
  manual_seed(8);
  EXPECT_FALSE(bit_equal(normal({100}), a));
}

TEST(Random, StepsDrawOtherBits) {
  manual_seed(7);
  const Tensor a = uniform({100});
  next_step();
  const Tensor b = uniform({100});
  next_step();
  EXPECT_FALSE(bit_equal(a, b));
  EXPECT_FALSE(bit_equal(uniform({100}), b));
  EXPECT_EQ(rng_state().to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 2}));
}

// The same call in the same step under the same path draws the same numbers, whatever else has run.
TEST(Random, DrawsDependOnThePathAlone) {
  auto draw = [](const char* path) {
    const PathScope scope(path);
    return uniform({10});
  };
  manual_seed(7);
  const Tensor a = draw("a");
  manual_seed(7);
  const Tensor b = draw("b"), c = draw("b");
  EXPECT_TRUE(bit_equal(draw("a"), a));
  EXPECT_FALSE(bit_equal(a, b));
  EXPECT_FALSE(bit_equal(b, c)) << "occurrences differ";
}

TEST(Random, SeedRestartsTheStep) {
  manual_seed(7);
  const Tensor a = uniform({10});
  next_step();
  uniform({10});
  manual_seed(7);
  EXPECT_EQ(rng_state().to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 0}));
  EXPECT_TRUE(bit_equal(uniform({10}), a));
}

// manual_seed() writes the existing state tensor. So a captured step, which holds this tensor, sees the new seed.
TEST(Random, SeedWritesTheStateInPlace) {
  manual_seed(7);
  const Tensor held = rng_state();
  manual_seed(9);
  EXPECT_EQ(held.to_vector<std::int64_t>()[0], 9);
}

TEST(Random, UniformStaysInItsRangeAndNormalHasItsMoments) {
  manual_seed(1);
  double low = 1e9, high = -1e9, total = 0, squares = 0;
  for (float v : uniform({100000}, -3, 5).to_vector<float>())
    low = std::min<double>(low, v), high = std::max<double>(high, v), total += v;
  EXPECT_GE(low, -3);
  EXPECT_LT(high, 5);
  EXPECT_NEAR(total / 1e5, 1, 0.03);  // the mean's deviation is 8 / sqrt(12 * 1e5) = 0.0073
  total = 0;
  for (double v : normal({100000}, 2, 3, DType::f64).to_vector<double>()) total += v, squares += (v - 2) * (v - 2);
  EXPECT_NEAR(total / 1e5, 2, 0.04);
  EXPECT_NEAR(squares / 1e5, 9, 0.16);
}

TEST(Random, DropoutKeepsTheRightShareAndScalesIt) {
  manual_seed(1);
  const std::vector<float> y = dropout(ones({100000}), 0.25).to_vector<float>();
  std::int64_t zeros = 0;
  for (float v : y) {
    ASSERT_TRUE(v == 0 || v == 1.0f / 0.75f) << v;
    zeros += v == 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 1e5, 0.25, 0.006);
  EXPECT_THROW(dropout(ones({2}), 1.0), TypeError);
  EXPECT_THROW(dropout(ones({2}), -0.1), TypeError);
}

TEST(Random, BackwardOfDropoutDrawsTheSameMask) {
  manual_seed(1);
  Tensor x = ones({1000});
  x.requires_grad(true);
  const Tensor y = dropout(x, 0.5);
  backward(sum(y));
  EXPECT_TRUE(bit_equal(x.grad(), y));
}

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 16}, fc2{*this, "fc2", 16, 4};
  Dropout drop{*this, "drop", 0.5};
  Tensor operator()(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
};

std::vector<Tensor> trained(std::uint64_t seed) {
  manual_seed(seed);
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  const Tensor x = normal({8, 6}), y = from_vector(std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3}, {8});
  for (int step = 0; step < 20; ++step) {
    backward(cross_entropy(net(x), y));
    optimizer.step();
    optimizer.zero_grad();
  }
  return net.parameters();
}

TEST(Random, ThreadsTrainAsIfAlone) {
  const std::vector<Tensor> alone1 = trained(1), alone2 = trained(2);
  std::vector<Tensor> one, two;
  std::thread a([&] { one = trained(1); }), b([&] { two = trained(2); });
  a.join();
  b.join();
  ASSERT_EQ(one.size(), 4u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(bit_equal(one[i], alone1[i]));
    EXPECT_TRUE(bit_equal(two[i], alone2[i]));
    EXPECT_EQ(one[i].grad().defined(), false);
  }
}

}  // namespace
}  // namespace tapedeck
