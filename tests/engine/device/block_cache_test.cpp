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
  void* const a = cache.take(1000, 0, kNoWait);
  void* const b = cache.take(1000, 0, kNoWait);
  EXPECT_NE(a, b);
  cache.give(a);
  EXPECT_EQ(cache.take(1024, 0, kNoWait), a);
  cache.give(b);
  EXPECT_NE(cache.take(100, 0, kNoWait), b) << "a small tensor would hold a block ten times as large";
  EXPECT_EQ(source.calls, 3);
}

TEST(BlockCache, GivesUnusedBlocksBackBeforeItFails) {
  Source source;
  BlockCache cache = source.cache();
  int waits = 0;
  const auto wait = [&] { ++waits; };
  void* const large = cache.take(48 << 20, 0, wait);
  EXPECT_EQ(cache.take(32 << 20, 0, wait), nullptr);
  EXPECT_EQ(waits, 0);
  cache.give(large);
  EXPECT_NE(cache.take(32 << 20, 0, wait), nullptr);
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(source.taken, std::size_t{32} << 20);
  EXPECT_EQ(cache.trim(), 0u);
}

TEST(BlockCache, AStreamKeepsItsBlocksWhileThereIsMemory) {
  Source source;
  source.limit = 4096;
  BlockCache cache = source.cache();
  void* const a = cache.take(1024, 0, kNoWait);
  cache.give(a);
  void* const b = cache.take(1024, 1, kNoWait);
  EXPECT_NE(a, b) << "it would have to wait for stream 0";
  cache.give(b);
  EXPECT_EQ(cache.take(1024, 0, kNoWait), a);
  void* const c = cache.take(2048, 0, kNoWait);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(cache.take(1024, 2, kNoWait), b) << "the memory is full";
  EXPECT_EQ(cache.find(b)->stream, 2u) << "now it is of this stream";
}

TEST(BlockCache, FindsTheBlockOfAnAddress) {
  std::vector<char> memory(4096);
  BlockCache cache([&](std::size_t bytes) { return bytes == 1024 ? memory.data() + 512 : nullptr; }, [](void*) {});
  EXPECT_EQ(cache.find(memory.data() + 600), nullptr);
  void* const block = cache.take(1000, 3, kNoWait);
  EXPECT_EQ(cache.find(memory.data() + 511), nullptr);
  ASSERT_NE(cache.find(block), nullptr);
  EXPECT_EQ(cache.find(block)->stream, 3u);
  EXPECT_EQ(cache.find(memory.data() + 512 + 1023), cache.find(block));
  EXPECT_EQ(cache.find(memory.data() + 512 + 1024), nullptr);
  cache.give(block);
  EXPECT_NE(cache.find(block), nullptr) << "its last work is known while it is unused";
  cache.trim();
  EXPECT_EQ(cache.find(block), nullptr);
}

TEST(BlockCache, NeverHandsOneBlockToTwo) {
  Source source;
  BlockCache cache = source.cache();
  std::mt19937 random(3);
  std::map<void*, std::size_t> held;
  for (int i = 0; i < 20000; ++i) {
    if (held.size() < 30 && random() % 2 == 0) {
      const std::size_t bytes = 1 + random() % (1 << (random() % 20));
      void* const block = cache.take(bytes, 0, [] {});
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
