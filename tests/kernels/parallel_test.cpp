// Tests parallel_for (each piece runs once, and only the grain decides the pieces) and Name, which many threads intern at
// the same time.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/parallel.h>

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace tapedeck::testing {
namespace {

using Pieces = std::set<std::pair<std::int64_t, std::int64_t>>;

Pieces pieces_of(std::int64_t n, std::int64_t grain, int threads) {
  Pieces pieces;
  std::mutex mutex;
  with_threads(threads, [&] {
    kernels::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard<std::mutex> lock(mutex);
      EXPECT_TRUE(pieces.insert({begin, end}).second);
    });
  });
  return pieces;
}

TEST(ParallelFor, PiecesAreCutByTheGrain) {
  for (const std::int64_t n : {0, 1, 7, 8, 9, 1000})
    for (const std::int64_t grain : {1, 3, 8, 5000}) {
      Pieces expected;
      for (std::int64_t begin = 0; begin < n; begin += grain) expected.insert({begin, std::min(n, begin + grain)});
      EXPECT_EQ(pieces_of(n, grain, 1), expected);
      EXPECT_EQ(pieces_of(n, grain, 2), expected);
    }
}

TEST(ParallelFor, Nests) {
  std::atomic<std::int64_t> total{0};
  with_threads(2, [&] {
    kernels::parallel_for(16, 1, [&](std::int64_t, std::int64_t) {
      kernels::parallel_for(100, 7, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
    });
  });
  EXPECT_EQ(total, 1600);
}

// Pieces write plain memory, and the caller reads it afterwards. The sanitizer must know from the annotations that this is
// no race.
TEST(ParallelFor, WritesAreSeenAfterwards) {
  std::vector<int> data(10000);
  with_threads(2, [&] {
    kernels::parallel_for(10000, 100, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) data[i] = 1;
    });
    std::int64_t sum = 0;
    for (const int x : data) sum += x;
    EXPECT_EQ(sum, 10000);
  });
}

TEST(Name, EqualTextsAreOne) {
  const std::string text = "fc1.weight";
  EXPECT_EQ(Name(text), Name("fc1.weight"));
  EXPECT_EQ(Name(text).id(), Name("fc1.weight").id());
  EXPECT_NE(Name("a"), Name("b"));
  EXPECT_EQ(Name(text).view(), text);
  EXPECT_TRUE(Name("").empty());
  EXPECT_EQ(Name(""), Name());
  std::vector<const void*> ids(64);
  with_threads(2, [&] {
    kernels::parallel_for(64, 1, [&](std::int64_t i, std::int64_t) { ids[i] = Name("n" + std::to_string(i % 8)).id(); });
  });
  for (std::size_t i = 8; i < 64; ++i) EXPECT_EQ(ids[i], ids[i % 8]);
}

}  // namespace
}  // namespace tapedeck::testing
