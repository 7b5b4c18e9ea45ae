// Tests run_on_threads: the work runs once, its loops use at most the threads that were asked for, and errors arrive.
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/thread_limit.h>

#include <gtest/gtest.h>

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
