// Tests run_on_threads: the work runs once, its loops use at most the threads that were asked for, and errors arrive. Tests
// that the limit holds for other loops, and for these alone.
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/thread_limit.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tapedeck::testing {
namespace {

TEST(RunOnThreads, LoopsUseAtMostTheThreadsAskedFor) {
  for (const int threads : {1, 2}) {
    std::set<std::thread::id> seen;
    std::mutex mutex;
    int calls = 0;
    kernels::run_on_threads(threads, [&] {
      ++calls;
      kernels::parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        const std::lock_guard<std::mutex> lock(mutex);
        seen.insert(std::this_thread::get_id());
      });
    });
    EXPECT_EQ(calls, 1);
    EXPECT_GE(seen.size(), 1u);
    EXPECT_LE(seen.size(), static_cast<std::size_t>(threads));
  }
}

// Whether two pieces of a loop run at the same time: each waits for the other, for at most `ms` milliseconds.
bool two_at_once(int ms) {
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  kernels::parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    if (++inside == 2) met = true;
    for (int i = 0; i < ms && !met; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --inside;
  });
  return met;
}

// The threads that the pieces of a loop ran on.
std::size_t threads_of_a_loop() {
  std::set<std::thread::id> seen;
  std::mutex mutex;
  kernels::parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const std::lock_guard<std::mutex> lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  return seen.size();
}

struct Limit {
  explicit Limit(int threads) { kernels::set_thread_limit(threads); }
  ~Limit() { kernels::set_thread_limit(0); }
};

TEST(ThreadLimit, HoldsForLoopsThatWereGivenNoThreads) {
  for (const int threads : {1, 2, 3}) {
    const Limit limit(threads);
    EXPECT_EQ(kernels::thread_limit(), threads);
    EXPECT_LE(threads_of_a_loop(), static_cast<std::size_t>(threads));
  }
  EXPECT_EQ(kernels::thread_limit(), kernels::hardware_threads());
}

TEST(ThreadLimit, DoesNotHoldForLoopsWithThreadsOfTheirOwn) {
  if (kernels::hardware_threads() < 2) GTEST_SKIP() << "TBB starts no worker on this machine";
  const Limit limit(1);
  EXPECT_EQ(threads_of_a_loop(), 1u);
  bool met = false;
  kernels::run_on_threads(2, [&] { met = two_at_once(20'000); });
  EXPECT_TRUE(met);
}

TEST(RunOnThreads, TheCallerSeesWhatTheWorkWrote) {
  std::vector<int> squares(1000);
  kernels::run_on_threads(kernels::hardware_threads(), [&] {
    kernels::parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) squares[i] = static_cast<int>(i * i);
    });
  });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(squares[i], i * i);
}

TEST(RunOnThreads, NeedsAtLeastOneThreadAndPassesErrorsOn) {
  EXPECT_GE(kernels::hardware_threads(), 1);
  EXPECT_THROW(kernels::run_on_threads(0, [] { throw std::runtime_error("from the work"); }), std::runtime_error);
}

}  // namespace
}  // namespace tapedeck::testing
