// The largest of neighbouring numbers, without a look at each: the maximum of every block of numbers is kept. A column of
// pixels of a large plan stands for thousands of nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck::viewer {

class BlockMaxima {
 public:
  BlockMaxima() = default;
  explicit BlockMaxima(std::span<const std::int64_t> numbers) {
    for (std::size_t from = 0; from < numbers.size(); from += kBlock) {
      const auto block = numbers.subspan(from, std::min(kBlock, numbers.size() - from));
      maxima_.push_back(*std::max_element(block.begin(), block.end()));
    }
  }

  // The first place in [begin, end) of the largest number there; `end` if the range is empty. REQUIRES the numbers that the
  // object was made of. O(length / 64 + 64).
  std::size_t first_of_largest(std::span<const std::int64_t> numbers, std::size_t begin, std::size_t end) const {
    if (begin >= end) return end;
    std::size_t largest = begin;
    const auto look_at = [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i)
        if (numbers[i] > numbers[largest]) largest = i;
    };
    const std::size_t first_block = (begin + kBlock - 1) / kBlock, end_block = end / kBlock;
    if (first_block >= end_block) return look_at(begin, end), largest;
    look_at(begin, first_block * kBlock);
    for (std::size_t block = first_block; block < end_block; ++block)
      if (maxima_[block] > numbers[largest]) look_at(block * kBlock, (block + 1) * kBlock);
    look_at(end_block * kBlock, end);
    return largest;
  }

 private:
  static constexpr std::size_t kBlock = 64;
  std::vector<std::int64_t> maxima_;
};

}  // namespace tapedeck::viewer
