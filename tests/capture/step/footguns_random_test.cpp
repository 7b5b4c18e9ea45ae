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
// this; the step says so and does not replay.
TEST(Footguns, DrawsThatCountOn) {
  auto run = [](bool captured) {
    manual_seed(4);
    auto body = [](const Tensors& in) -> Tensors { return {dropout(in[0], 0.5)}; };
    CapturedStep step = capture(body);
    Tensors out;
    for (int i = 0; i < 70; ++i) out.push_back((captured ? step({ones({16})}) : body({ones({16})}))[0]);
    next_step();
    for (int i = 0; i < 8; ++i) {
      out.push_back((captured ? step({ones({16})}) : body({ones({16})}))[0]);
      next_step();
    }
    if (captured) {
      EXPECT_GE(step.replays(), 6);
      EXPECT_MENTIONS(step.explain(), "draws were made under the path '' in this random step");
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

}  // namespace
}  // namespace tapedeck
