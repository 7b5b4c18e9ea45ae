// Tests that a captured step draws the same random numbers as the eager step.
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/capture/step/footguns.h>

#include <thread>

namespace tapedeck {
namespace {

TEST(Footguns, RandomOpsDrawAnewInEveryReplay) {
  auto run = [](bool captured) {
    manual_seed(4);
    auto body = [](const Tensors& in) -> Tensors {
      const Tensor y = in[0] + uniform({3});
      next_step();
      return {y, normal({2})};
    };
    CapturedStep step = capture(body);
    std::vector<Tensors> out;
    for (int i = 0; i < 6; ++i) out.push_back(captured ? step({tensor({0, 0, 0})}) : body({tensor({0, 0, 0})}));
    return out;
  };
  const auto eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i)
    for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(bit_equal(eager[i][k], captured[i][k])) << i;
  EXPECT_FALSE(bit_equal(captured[3][0], captured[4][0]));
}

// The step draws but never begins a new random step, so in eager code every call draws other numbers. A replay could not do
// this; the step says so and does not replay. After some calls it no longer records either.
TEST(Footguns, DrawsThatCountOn) {
  auto run = [](bool captured) {
    manual_seed(4);
    auto body = [](const Tensors& in) -> Tensors { return {dropout(in[0], 0.5)}; };
    CapturedStep step = capture(body);
    Tensors out;
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 70; ++i) out.push_back((captured ? step({ones({16})}) : body({ones({16})}))[0]);
    const std::string warning = ::testing::internal::GetCapturedStderr();
    if (captured)
      EXPECT_MENTIONS(warning, "begins no random step (next_step())");
    else
      EXPECT_EQ(warning, "");
    next_step();
    for (int i = 0; i < 8; ++i) {
      out.push_back((captured ? step({ones({16})}) : body({ones({16})}))[0]);
      next_step();
    }
    if (captured) {
      EXPECT_GE(step.replays(), 6);
      EXPECT_LE(step.recordings(), 20);
      EXPECT_MENTIONS(step.explain(), "draws were made under the path '' in this random step");
      EXPECT_MENTIONS(step.explain(), "times eagerly: it draws other numbers in every call");
    }
    return out;
  };
  const Tensors eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
}

// Each thread has its own random state. So a call on another thread is another program.
TEST(Footguns, AnotherThreadDrawsFromItsOwnState) {
  manual_seed(1);
  auto body = [](const Tensors& in) -> Tensors {
    const Tensor y = in[0] + uniform({2});
    next_step();
    return {y};
  };
  CapturedStep step = capture(body);
  for (int i = 0; i < 3; ++i) step({tensor({0, 0})});
  Tensor captured, eager;
  std::thread([&] {
    manual_seed(77);
    captured = step({tensor({0, 0})})[0];
    manual_seed(77);
    eager = body({tensor({0, 0})})[0];
  }).join();
  EXPECT_TRUE(bit_equal(captured, eager));
  EXPECT_MENTIONS(step.explain(), "the random state is another thread's");
}

// A seed that another thread sets between two calls reaches the replays of this thread, and numbers of draws begin anew.
TEST(Footguns, ReplaysFollowTheSeedOfAnotherThread) {
  auto body = [](const Tensors& in) -> Tensors {
    const Tensor y = in[0] + uniform({100}) + dropout(in[0], 0.5);
    next_step();
    return {y};
  };
  const auto run = [&](bool captured) {
    manual_seed(7);
    CapturedStep step = capture(body);
    const Tensor x = ones({100});
    Tensors results;
    for (int i = 0; i < 12; ++i) {
      if (i % 4 == 0) std::thread([&] { manual_seed(static_cast<std::uint64_t>(i) + 10); }).join();
      if (i % 4 == 3) uniform({5});
      results.push_back(captured ? step({x})[0] : body({x})[0]);
    }
    EXPECT_GE(step.replays(), captured ? 6 : 0);
    return results;
  };
  const Tensors eager = run(false), captured = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
}

// A step that is under way keeps its bits. Later draws follow the seed.
TEST(Footguns, ACaptureIsNotSeededAgain) {
  manual_seed(7);
  Tensor first, second;
  {
    Capture capture;
    first = uniform({100});
    EXPECT_THROW(use_random_stream(1), CaptureError);
    EXPECT_THROW(manual_seed(1), CaptureError);
    std::thread([] { manual_seed(8); }).join();
    second = uniform({100});
    capture.output("y", first + second);
    EXPECT_EQ(capture.finish().graph.n_state, 1);
  }
  const Tensor after = uniform({100});
  manual_seed(7);
  EXPECT_TRUE(bit_equal(uniform({100}), first));
  EXPECT_TRUE(bit_equal(uniform({100}), second));
  EXPECT_FALSE(bit_equal(uniform({100}), after));
}

}  // namespace
}  // namespace tapedeck
