// Tests the allocator: the blocks that it returns, and the bytes and blocks that it counts.
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/ir/error.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace tapedeck {
namespace {

TEST(Allocator, CountsWhatWasAskedFor) {
  Allocator a;
  void* p = a.allocate(100);
  void* q = a.allocate(5000);
  EXPECT_EQ(a.stats().bytes_in_use, 5100);
  EXPECT_EQ(a.stats().blocks_in_use, 2);
  a.release(p, 100);
  EXPECT_EQ(a.stats().bytes_in_use, 5000);
  EXPECT_EQ(a.stats().peak_bytes, 5100);
  a.reset_peak();
  EXPECT_EQ(a.stats().peak_bytes, 5000);
  a.release(q, 5000);
  EXPECT_EQ(a.stats().bytes_in_use, 0);
  EXPECT_EQ(a.stats().blocks_in_use, 0);
}

// Bytes of this process that are in memory, as the system counts them.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(Allocator, TrimGivesBackWhatNobodyUses) {
#ifdef TAPEDECK_SANITIZED
  GTEST_SKIP() << "under a sanitizer no block is kept";
#endif
  constexpr std::int64_t kBytes = 64 << 20;
  Allocator a;
  void* used = a.allocate(1000);
  void* freed = a.allocate(kBytes);
  std::memset(freed, 1, kBytes);
  a.release(freed, kBytes);
  const std::int64_t before = resident_bytes();
  EXPECT_GE(a.trim(), kBytes);
  EXPECT_LT(resident_bytes(), before - kBytes / 2);
  EXPECT_EQ(a.trim(), 0);
  EXPECT_EQ(a.stats().bytes_in_use, 1000);
  a.release(used, 1000);
}

// A tensor that ends in the middle of a huge page does not take the whole page.
TEST(Allocator, LargeBlocksTakeTheBytesThatAreUsed) {
#ifdef TAPEDECK_SANITIZED
  GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
  constexpr std::int64_t kBytes = (2 << 20) + 8192;
  constexpr int kBlocks = 64;
  Allocator a;
  std::vector<void*> blocks;
  const std::int64_t before = resident_bytes();
  for (int i = 0; i < kBlocks; ++i) {
    blocks.push_back(a.allocate(kBytes));
    std::memset(blocks.back(), 1, kBytes);
  }
  EXPECT_LT(resident_bytes() - before, kBlocks * kBytes + (16 << 20));  // with whole pages: 128 MiB more
  for (void* block : blocks) a.release(block, kBytes);
}

TEST(PeakMemory, IsThatOfTheScopeAndNests) {
  Allocator& host = Allocator::host();
  const std::int64_t start = memory_stats().bytes_in_use;
  PeakMemory outer;
  void* a = host.allocate(10'000);
  {
    PeakMemory inner;
    host.release(host.allocate(5'000), 5'000);
    EXPECT_EQ(inner.bytes(), start + 15'000);
    EXPECT_EQ(inner.increase(), 5'000);
  }
  host.release(a, 10'000);
  {
    PeakMemory inner;
    EXPECT_EQ(inner.increase(), 0);
  }
  EXPECT_EQ(outer.increase(), 15'000);
}

TEST(Allocator, NothingTakesNothing) {
  Allocator a;
  EXPECT_EQ(a.allocate(0), nullptr);
  a.release(nullptr, 0);
  EXPECT_EQ(a.stats().blocks_in_use, 0);
}

TEST(Allocator, BlocksAreAlignedDistinctAndLargeEnough) {
  Allocator a;
  std::mt19937 random(1);
  std::vector<std::pair<unsigned char*, std::int64_t>> blocks;
  for (int i = 0; i < 500; ++i) {
    const std::int64_t bytes = 1 + static_cast<std::int64_t>(random() % (i % 10 == 0 ? 3000000u : 9000u));
    auto* p = static_cast<unsigned char*>(a.allocate(bytes));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0u);
    std::memset(p, i & 255, static_cast<std::size_t>(bytes));
    blocks.emplace_back(p, bytes);
    if (i % 3 == 0) {
      const std::size_t k = random() % blocks.size();
      a.release(blocks[k].first, blocks[k].second);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  for (auto& [p, bytes] : blocks) EXPECT_EQ(p[0], p[bytes - 1]) << "another block wrote here";
  for (auto& [p, bytes] : blocks) a.release(p, bytes);
  EXPECT_EQ(a.stats().bytes_in_use, 0);
}

TEST(Allocator, AdoptedBytesCount) {
  Allocator a;
  a.adopt(1000);
  EXPECT_EQ(a.stats().bytes_in_use, 1000);
  EXPECT_EQ(a.stats().peak_bytes, 1000);
  a.forget(1000);
  EXPECT_EQ(a.stats().bytes_in_use, 0);
  EXPECT_EQ(a.stats().peak_bytes, 1000);
}

TEST(Allocator, BuffersFreeThemselvesAndMove) {
  Allocator a;
  {
    Buffer b(a, 64);
    Buffer c = std::move(b);
    EXPECT_EQ(b.data(), nullptr);
    EXPECT_NE(c.data(), nullptr);
    b = Buffer(a, 128);
    EXPECT_EQ(a.stats().bytes_in_use, 192);
  }
  EXPECT_EQ(a.stats().bytes_in_use, 0);
}

TEST(Allocator, OutOfMemoryNamesTheSize) {
  Allocator a;
  try {
    a.allocate(std::int64_t{1} << 60);
    FAIL() << "there cannot be that much";
  } catch (const ExecutionError& e) {
    EXPECT_NE(std::string(e.what()).find("out of memory"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("1152921504606846976"), std::string::npos) << e.what();
  }
  EXPECT_EQ(a.stats().bytes_in_use, 0);
}

// The values that backward keeps of a long chain of small ops are freed all together, and the next step takes as many.
TEST(Allocator, ThousandsOfSmallBlocksStayWithTheThread) {
#ifdef TAPEDECK_SANITIZED
  GTEST_SKIP() << "under a sanitizer no block is kept";
#endif
  Allocator& host = Allocator::host();
  const auto take_and_give = [&] {
    std::vector<void*> blocks;
    for (int i = 0; i < 4000; ++i) blocks.push_back(host.allocate(64));
    const std::int64_t taken = host.system_bytes();
    for (void* block : blocks) host.release(block, 64);
    return taken;
  };
  const std::int64_t taken = take_and_give();
  EXPECT_EQ(host.system_bytes(), taken) << "some went back to the C library";
  EXPECT_EQ(take_and_give(), taken);
}

// Threads that start and end hand blocks to each other.
TEST(Allocator, HostServesManyThreads) {
  const std::int64_t before = Allocator::host().stats().bytes_in_use;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::pair<void*, std::int64_t>> made[4];
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::int64_t i = 0; i < 300; ++i) {
          const std::int64_t bytes = 1 + i * 37 % 6000;
          made[t].emplace_back(Allocator::host().allocate(bytes), bytes);
          if (i % 2) {
            Allocator::host().release(made[t].back().first, made[t].back().second);
            made[t].pop_back();
          }
        }
      });
    for (std::thread& t : threads) t.join();
    for (auto& blocks : made)
      for (auto& [p, bytes] : blocks) Allocator::host().release(p, bytes);
  }
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, before);
}

}  // namespace
}  // namespace tapedeck
