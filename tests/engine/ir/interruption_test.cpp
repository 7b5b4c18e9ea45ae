// Tests that long work stops where a flag or a condition asks for it, and only while that is heeded.
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>
#include <tapedeck/engine/ops/elementwise.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace tapedeck {
namespace {

constexpr const char* kText = "graph g(%x: f32[]) {\n  %y: f32[] = exp(%x)\n  return %y\n}\n";

TEST(Interruption, WorkOfEveryKindHeedsTheFlag) {
  const Graph g = parse(kText, "g");
  const Tensor x = scalar(1);
  const ValueId in[] = {0}, out[] = {1};
  const std::function<void()> work[] = {[&] { exp(x); }, [] { parse(kText, "g"); }, [&] { verify(g); },
                                        [&] {
                                          interpret(g, {&x, 1});
                                        },
                                        [&] { gradient(g, out, in); }};
  std::atomic<bool> flag{false};
  for (const auto& one : work) {
    {
      const HeedFlag heed(flag);
      EXPECT_NO_THROW(one());
      flag = true;
      EXPECT_THROW(one(), Cancelled);
      std::thread([&] { EXPECT_THROW(one(), Cancelled); }).join();
    }
    EXPECT_NO_THROW(one());
    flag = false;
  }
}

TEST(Interruption, AConditionIsHeededOnItsThread) {
  struct Counter final : StopCondition {
    int left = 3;
    bool must_stop() noexcept override { return left-- == 0; }
  } counter;
  const HeedHere heed(counter);
  std::thread([] { EXPECT_NO_THROW(stop_if_interrupted()); }).join();
  for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(stop_if_interrupted());
  EXPECT_THROW(stop_if_interrupted(), Cancelled);
}

// It ends only if it is stopped.
TEST(Interruption, StopsAnEndlessLoop) {
  const Graph g = parse(R"(graph endless(%x: f32[1], %go: bool[]) {
  %n: i64[], %y: f32[1] = while(%x, %go) {carried=1} (%i: i64[], %c: f32[1], %g: bool[]) {
    return %g
  } (%i: i64[], %c: f32[1], %g: bool[]) {
    return %c
  }
  return %y
})",
                        "endless");
  std::atomic<bool> flag{false};
  const HeedFlag heed(flag);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    flag = true;
  });
  const Tensor given[] = {tensor({1}), scalar(1, DType::boolean)};
  EXPECT_THROW(interpret(g, given), Cancelled);
  later.join();
}

}  // namespace
}  // namespace tapedeck
