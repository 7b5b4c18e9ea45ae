// The cache of device blocks, over an allocator that counts and has a limit.
#include <tapedeck/engine/eager/block_cache.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <vector>

namespace tapedeck {
namespace {

struct Source {
  Source() = default;
  Source(const Source&) = delete;
  ~Source() {
    for (const auto& [block, bytes] : blocks) std::free(block);
  }
  std::size_t limit = 64 << 20, taken = 0;
  int calls = 0;
  std::map<void*, std::size_t> blocks;

  BlockCache cache() {
    return {[this](std::size_t bytes) -> void* {
              if (taken + bytes > limit) return nullptr;
              ++calls;
              taken += bytes;
              void* const block = std::malloc(1);
              blocks[block] = bytes;
              return block;
            },
            [this](void* block) {
              taken -= blocks.at(block);
              blocks.erase(block);
              std::free(block);
            }};
  }
};

const std::function<void()> kNoWait = [] { FAIL() << "waits although there is memory"; };

TEST(BlockCache, HandsABlockOutAgain) {
  Source source;
  BlockCache cache = source.cache();
  void* const a = cache.take(1000, kNoWait);
  void* const b = cache.take(1000, kNoWait);
  EXPECT_NE(a, b);
  cache.give(a);
  EXPECT_EQ(cache.take(1024, kNoWait), a);
  cache.give(b);
  EXPECT_NE(cache.take(100, kNoWait), b) << "a small tensor would hold a block ten times as large";
  EXPECT_EQ(source.calls, 3);
}

TEST(BlockCache, GivesUnusedBlocksBackBeforeItFails) {
  Source source;
  BlockCache cache = source.cache();
  int waits = 0;
  const auto wait = [&] { ++waits; };
  void* const large = cache.take(48 << 20, wait);
  EXPECT_EQ(cache.take(32 << 20, wait), nullptr);
  EXPECT_EQ(waits, 0);
  cache.give(large);
  EXPECT_NE(cache.take(32 << 20, wait), nullptr);
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(source.taken, std::size_t{32} << 20);
  EXPECT_EQ(cache.trim(), 0u);
}

TEST(BlockCache, NeverHandsOneBlockToTwo) {
  Source source;
  BlockCache cache = source.cache();
  std::mt19937 random(3);
  std::map<void*, std::size_t> held;
  for (int i = 0; i < 20000; ++i) {
    if (held.size() < 30 && random() % 2 == 0) {
      const std::size_t bytes = 1 + random() % (1 << (random() % 20));
      void* const block = cache.take(bytes, [] {});
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(held.emplace(block, bytes).second) << "step " << i;
      ASSERT_GE(source.blocks.at(block), bytes);
    } else if (!held.empty()) {
      const auto at = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      cache.give(at->first);
      held.erase(at);
    }
  }
  for (const auto& [block, bytes] : held) cache.give(block);
  cache.trim();
  EXPECT_EQ(source.taken, 0u);
}

}  // namespace
}  // namespace tapedeck
