// Tests the maxima of ranges. The oracle looks at every number.
#include <tapedeck/viewer/plan/block_maxima.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tapedeck::viewer {
namespace {

TEST(BlockMaxima, FindTheFirstOfTheLargestInEveryRange) {
  std::mt19937 random(7);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{400}}) {
    std::vector<std::int64_t> numbers(size);
    for (std::int64_t& number : numbers) number = static_cast<std::int64_t>(random() % 9) - 4;  // few values: many are equal
    const BlockMaxima maxima(numbers);
    for (std::size_t begin = 0; begin <= size; ++begin)
      for (std::size_t end = begin; end <= size; ++end) {
        const auto from = numbers.begin() + static_cast<std::ptrdiff_t>(begin),
                   to = numbers.begin() + static_cast<std::ptrdiff_t>(end);
        ASSERT_EQ(maxima.first_of_largest(numbers, begin, end),
                  static_cast<std::size_t>(std::max_element(from, to) - numbers.begin()))
            << begin << " to " << end << " of " << size;
      }
  }
}

}  // namespace
}  // namespace tapedeck::viewer
