// Tests that searches beside other work leave a processor free, and find the same plan.
#include <tapedeck/capture/planner/search_beside.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/thread_limit.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace tapedeck {
namespace {

TEST(SearchBeside, LeavesAProcessorFree) {
  EXPECT_EQ(threads_beside(), std::max(kernels::hardware_threads() - 1, 1));
  std::mutex mutex;
  std::set<std::thread::id> threads;
  search_beside([&] {
    kernels::parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
  });
  EXPECT_GE(threads.size(), 1u);
  EXPECT_LE(static_cast<int>(threads.size()), threads_beside());
}

TEST(SearchBeside, FindsTheSamePlan) {
  std::string text = "graph chain(%x: f32[1024]) {\n  %h0: f32[1024] = exp(%x)\n";
  constexpr int kLayers = 24;
  for (int i = 1; i <= kLayers; ++i)
    text += "  %h" + std::to_string(i) + ": f32[1024] = tanh(%h" + std::to_string(i - 1) + ")\n";
  std::string gradient = "h" + std::to_string(kLayers);
  for (int i = kLayers; i >= 1; --i) {
    const std::string next = "g" + std::to_string(i);
    text += "  %" + next + ": f32[1024] = tanh_grad(%h" + std::to_string(i) + ", %" + gradient + ") [phase=backward]\n";
    gradient = next;
  }
  const Graph graph = parse(text + "  return %" + gradient + "\n}\n");
  const Plan plan = make_plan(graph, {.budget_percent = 50});
  Plan beside;
  search_beside([&] { beside = make_plan(graph, {.budget_percent = 50}); });
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(print(beside.graph), print(plan.graph));
  EXPECT_EQ(beside.peak_bytes, plan.peak_bytes);
}

}  // namespace
}  // namespace tapedeck
