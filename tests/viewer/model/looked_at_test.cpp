// Tests the heat map of a tensor against means that are taken cell by cell in the simple way, and the sentences about a value.
#include <tapedeck/viewer/model/looked_at.h>

#include <tapedeck/engine/eager/tensor.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tapedeck::viewer {
namespace {

Tensor counting(std::int64_t height, std::int64_t width) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < height * width; ++i) numbers.push_back(static_cast<float>((i * 37) % 101));
  return from_vector(numbers, {height, width});
}

TEST(HeatMap, ASmallMatrixHasACellForEachElement) {
  const HeatMap map = heat_map(counting(3, 5));
  ASSERT_EQ(map.rows, 3);
  ASSERT_EQ(map.columns, 5);
  EXPECT_EQ(map.place, "");
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 5; ++column)
      EXPECT_EQ(map.cell(row, column), static_cast<float>(((row * 5 + column) * 37) % 101));
  EXPECT_EQ(map.min, 0);
}

TEST(HeatMap, ALargeMatrixIsAveraged) {
  constexpr std::int64_t kHeight = 300, kWidth = 1000;
  const HeatMap map = heat_map(counting(kHeight, kWidth));
  ASSERT_EQ(map.rows, HeatMap::kMostCells);
  ASSERT_EQ(map.columns, HeatMap::kMostCells);
  EXPECT_EQ(map.top_of(map.rows), kHeight);
  EXPECT_EQ(map.left_of(map.columns), kWidth);
  // Every element is in exactly one cell: each cell's mean is that of the elements whose place falls into it.
  std::vector<double> sums(map.cells.size()), counts(map.cells.size());
  for (std::int64_t y = 0; y < kHeight; ++y) {
    std::int32_t row = 0;
    while (map.top_of(row + 1) <= y) ++row;
    for (std::int64_t x = 0; x < kWidth; ++x) {
      std::int32_t column = 0;
      while (map.left_of(column + 1) <= x) ++column;
      const auto at = static_cast<std::size_t>(row * map.columns + column);
      sums[at] += static_cast<double>(((y * kWidth + x) * 37) % 101);
      ++counts[at];
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(map.cells[i], sums[i] / counts[i], 1e-4) << i;
}

TEST(HeatMap, TheFirstMatrixOfFurtherAxesIsShown) {
  std::vector<float> numbers(2 * 3 * 4 * 5);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const HeatMap map = heat_map(from_vector(numbers, {2, 3, 4, 5}));
  EXPECT_EQ(map.place, "[0,0,:,:]");
  ASSERT_EQ(map.rows, 4);
  ASSERT_EQ(map.columns, 5);
  EXPECT_EQ(map.max, 19);
}

TEST(HeatMap, AnElementThatIsNotFiniteMarksItsCell) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const HeatMap map = heat_map(from_vector(std::vector<float>{1, nan, inf, 3}, {4}));
  ASSERT_EQ(map.rows, 1);
  EXPECT_EQ(map.cell(0, 0), 1);
  EXPECT_TRUE(std::isnan(map.cell(0, 1)));
  EXPECT_TRUE(std::isnan(map.cell(0, 2)));
  EXPECT_EQ(map.max, 3);
}

TEST(HeatMap, AScalarAndAnEmptyTensorHaveNone) {
  EXPECT_EQ(heat_map(from_vector(std::vector<float>{1}, {})).rows, 0);
  EXPECT_EQ(heat_map(from_vector(std::vector<float>{}, {0, 3})).rows, 0);
}

TEST(LookedAt, SaysWhatIsZeroAndNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const LookedAt seen = look_at(7, {from_vector(std::vector<float>{0, 0, nan, 2}, {4}), 3, 2048});
  EXPECT_EQ(seen.value, 7);
  const std::vector<std::string> lines = sentences_of(seen, ByteUnit::of(std::int64_t{1} << 20));
  EXPECT_EQ(lines, (std::vector<std::string>{"its bytes are gone: 3 nodes computed it again beside the step, in 0.002 MiB",
                                             "min 0, max 2, mean 0.666667, standard deviation 0.942809",
                                             "1 of 4 elements is NaN", "2 of 4 elements are zero"}));
}

}  // namespace
}  // namespace tapedeck::viewer
