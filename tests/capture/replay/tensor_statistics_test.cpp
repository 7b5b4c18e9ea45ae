// Tests the statistics and histograms of tensors against cases worked out by hand, and against plain loops over doubles.
#include <tapedeck/capture/replay/tensor_statistics.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

constexpr double kNan64 = std::numeric_limits<double>::quiet_NaN(), kInf64 = std::numeric_limits<double>::infinity();
using Counts = std::vector<std::int64_t>;

TEST(TensorStatistics, CountsAndSummarises) {
  const TensorStatistics s = statistics(tensor({1, kNan64, -3, kInf64, 0, 6, -kInf64, -0.0}));
  EXPECT_EQ(s.elements, 8);
  EXPECT_EQ(s.nan, 1);
  EXPECT_EQ(s.infinite, 2);
  EXPECT_EQ(s.not_finite(), 3);
  EXPECT_EQ(s.zeros, 2);
  EXPECT_EQ(s.min, -3);
  EXPECT_EQ(s.max, 6);
  EXPECT_DOUBLE_EQ(s.mean, 0.8);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt((0.04 + 14.44 + 0.64 + 27.04 + 0.64) / 5));
}

TEST(TensorStatistics, OfNothingAreZero) {
  for (const Tensor& t : {tensor({kNan64, kInf64}), zeros({0, 3})}) {
    const TensorStatistics s = statistics(t);
    EXPECT_EQ(s.min, 0);
    EXPECT_EQ(s.max, 0);
    EXPECT_EQ(s.mean, 0);
    EXPECT_EQ(s.deviation, 0);
    EXPECT_TRUE(histogram(t).counts.empty());
  }
}

// Integers up to 100 are exact in every dtype but bool.
TEST(TensorStatistics, AreTheSameForEveryDtype) {
  std::vector<double> numbers;
  for (int i = 0; i < 60; ++i) numbers.push_back((i * 37) % 101);
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / 60;
  double squares = 0;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  const Tensor base = from_vector(numbers, {6, 10});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8})
    for (const bool turned : {false, true}) {
      Tensor t = cast(base, dtype);
      if (turned) t = transpose(t, {1, 0});
      const TensorStatistics s = statistics(t);
      EXPECT_EQ(s.min, 0);
      EXPECT_EQ(s.max, 100);
      EXPECT_DOUBLE_EQ(s.mean, mean);
      EXPECT_NEAR(s.deviation, std::sqrt(squares / 60), 1e-12);
      Counts wanted(10);
      for (const double x : numbers) ++wanted[std::min<std::size_t>(static_cast<std::size_t>(x / 10), 9)];
      EXPECT_EQ(histogram(t, 10).counts, wanted);
    }
  const TensorStatistics bools = statistics(cast(tensor({1, 0, 1, 1}), DType::boolean));
  EXPECT_EQ(bools.zeros, 1);
  EXPECT_EQ(bools.mean, 0.75);
}

TEST(Histogram, HasItsEdgesInTheRightBins) {
  const Histogram h = histogram(tensor({0, 1, 2, 3, 4, kNan64, kInf64}), 4);
  EXPECT_EQ(h.counts, (Counts{1, 1, 1, 2})) << "the greatest is in the last bin";
  for (std::size_t bin = 0; bin <= 4; ++bin) EXPECT_EQ(h.edge(bin), static_cast<double>(bin));
  const Histogram equal = histogram(tensor({7, 7, 7}), 4);
  EXPECT_EQ(equal.counts, Counts{3});
  EXPECT_EQ(equal.edge(0), 7);
  EXPECT_EQ(equal.edge(1), 7);
  EXPECT_THROW(histogram(tensor({1}), 0), UsageError);
}

// The range of two f64 may be larger than any f64.
TEST(Histogram, TakesTheWholeRangeOfF64) {
  const double most = std::numeric_limits<double>::max();
  const Histogram h = histogram(from_vector(std::vector<double>{-most, 0, most}, {3}), 2);
  EXPECT_EQ(h.counts, (Counts{1, 2}));
  EXPECT_EQ(h.edge(1), 0);
}

TEST(CornerText, ShowsFewElementsWholeAndManyByTheirCorners) {
  EXPECT_EQ(corner_text(from_vector(std::vector<float>{1, 2.5}, {2})), "[1.  2.5] f32[2]");
  const std::string many = corner_text(arange(1000.0));
  EXPECT_NE(many.find("..."), std::string::npos) << many;
  EXPECT_NE(many.find("999"), std::string::npos) << many;
  EXPECT_EQ(many.find("500"), std::string::npos) << many;
}

}  // namespace
}  // namespace tapedeck
