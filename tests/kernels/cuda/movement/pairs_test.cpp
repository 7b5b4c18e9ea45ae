// The sort of pairs in the emulator. The oracle is std::stable_sort.
#include <tapedeck/kernels/cuda/movement/pairs.inl>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace tapedeck::kernels::emulated {
namespace {

template <class Key>
void expect_sorted(std::mt19937& random, std::int64_t lines, std::int64_t n, std::uint64_t largest) {
  std::vector<char> memory(static_cast<std::size_t>(movement::PairSpace<Key>::bytes(lines, n)) + 8, 0x33);
  movement::PairSpace<Key> space(memory.data(), lines, n);
  std::vector<Key> keys(static_cast<std::size_t>(lines * n));
  for (Key& key : keys) key = static_cast<Key>((static_cast<std::uint64_t>(random()) << 32 | random()) & largest);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    space.pairs.keys[i] = keys[i];
    space.pairs.numbers[i] = static_cast<std::uint32_t>(i % static_cast<std::size_t>(n));
  }
  KernelFault fault;
  KernelCall call;
  call.fault = &fault;
  movement::sort_pairs(call, space, lines, n, movement::bits_for(largest));
  std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
  for (std::int64_t line = 0; line < lines; ++line) {
    const Key* const own = keys.data() + line * n;
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return own[a] < own[b]; });
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t expected = order[static_cast<std::size_t>(i)];
      ASSERT_EQ(space.pairs.numbers[line * n + i], expected) << "line " << line << " of " << n << ", place " << i;
      ASSERT_EQ(space.pairs.keys[line * n + i], own[expected]);
    }
  }
}

TEST(CudaPairs, SortsShortLines) {
  std::mt19937 random(1);
  for (const std::int64_t n : {1, 2, 3, 31, 64, 100, 300})
    for (const std::uint64_t largest : {1ull, 15ull, 0xffffffffull}) {
      expect_sorted<std::uint32_t>(random, 3, n, largest);
      expect_sorted<std::uint64_t>(random, 2, n, largest == 15 ? 15 : ~0ull);
    }
  expect_sorted<std::uint64_t>(random, 1, movement::kShortLine, 255);
}

TEST(CudaPairs, SortsLongLines) {
  std::mt19937 random(2);
  expect_sorted<std::uint32_t>(random, 1, movement::kShortLine + 1, 0);
  expect_sorted<std::uint32_t>(random, 2, 5000, 0xfff);
  expect_sorted<std::uint32_t>(random, 1, 3 * movement::kPairTile, 0xffff);
  expect_sorted<std::uint32_t>(random, 1, 4099, 0xffffffffull);
  expect_sorted<std::uint64_t>(random, 1, 4100, 0x3ffffffffull);
}

TEST(CudaPairs, AddsUpTheCountsOfManyTiles) {
  std::mt19937 random(3);
  expect_sorted<std::uint32_t>(random, 1, 36000, 7);
}

TEST(CudaPairs, KnowsTheBitsOfANumber) {
  EXPECT_EQ(movement::bits_for(0), 1);
  EXPECT_EQ(movement::bits_for(1), 1);
  EXPECT_EQ(movement::bits_for(2), 2);
  EXPECT_EQ(movement::bits_for(255), 8);
  EXPECT_EQ(movement::bits_for(256), 9);
  EXPECT_EQ(movement::bits_for(~0ull), 64);
}

}  // namespace
}  // namespace tapedeck::kernels::emulated
