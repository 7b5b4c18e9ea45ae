// Tests calls of a captured step: inside another step, calls that fail half way, and calls from two threads. The oracle is
// eager code.
#include <tapedeck/engine/eager/inplace.h>

#include <tapedeck/tests/capture/step/footguns.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

namespace tapedeck {
namespace {

using testing::message_of;

TEST(Footguns, AStepInsideAStepIsPartOfIt) {
  Tensor w = tensor({1});
  w.name("w").role(Role::parameter);
  CapturedStep inner = capture([&](const Tensors& in) -> Tensors {
    add_(w, 1);
    return {in[0] * w};
  });
  CapturedStep outer = capture([&](const Tensors& in) -> Tensors { return {inner({in[0] + 1})[0] * 2}; });
  for (int i = 2; i < 8; ++i) EXPECT_EQ(values(outer({tensor({1})})[0]), Floats{4.f * static_cast<float>(i)});
  EXPECT_EQ(inner.recordings(), 0) << "the outer step recorded its ops";
  EXPECT_EQ(outer.replays(), 4);
  // Called alone, the inner step is a captured step of its own.
  EXPECT_EQ(values(inner({tensor({1})})[0]), Floats{8});
  EXPECT_EQ(inner.recordings(), 1);
}

TEST(Footguns, AStepThatCallsItself) {
  std::function<Tensors(const Tensors&)> again;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return again(in); });
  again = [&](const Tensors& in) { return step(in); };
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }),
                  "this captured step is in use: by another thread, or from inside itself");
}

TEST(Footguns, ANestedScopeIsRefused) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    Capture scope("inner");
    return {in[0]};
  });
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }), "a capture is already open on this thread");
}

TEST(Footguns, AnExceptionHalfWay) {
  Tensor w = tensor({1});
  w.name("w").role(Role::parameter);
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  int calls = 0;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    add_(w, 1);
    if (++calls == 2) throw Mine("half way");
    return {in[0] * w};
  });
  EXPECT_EQ(values(step({tensor({1})})[0]), Floats{2});
  EXPECT_THROW(step({tensor({1})}), Mine);
  EXPECT_EQ(values(w), Floats{3}) << "the eager result stands";
  for (int i = 4; i < 8; ++i) EXPECT_EQ(values(step({tensor({1})})[0]), Floats{static_cast<float>(i)});
  EXPECT_EQ(step.recordings(), 2);
}

// A kernel fails during a replay: the call throws. No state was written, so the next call replays again.
TEST(Footguns, AFaultInAReplay) {
  Tensor seen = tensor({0});
  seen.name("seen").role(Role::counter);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    const Tensor y = index_select(in[0], 0, in[1]);
    add_(seen, sum(y));
    return {y};
  });
  const Tensor x = tensor({10, 20, 30});
  for (int i = 0; i < 3; ++i) step({x, from_vector(std::vector<std::int32_t>{2}, {1})});
  EXPECT_THROW(step({x, from_vector(std::vector<std::int32_t>{7}, {1})}), ExecutionError);
  EXPECT_EQ(values(seen), Floats{90});
  EXPECT_EQ(values(step({x, from_vector(std::vector<std::int32_t>{1}, {1})})[0]), Floats{20});
  EXPECT_EQ(values(seen), Floats{110});
}

TEST(Footguns, ForgettingRecordsAnew) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] * 2}; });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  step.forget();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({1})})[0]), Floats{2});
  EXPECT_EQ(step.recordings(), 4);
}

// Two threads call a step at the same time. One call runs, the other is refused; the results of the calls that ran are
// right.
TEST(Footguns, TwoThreadsAtOnce) {
  Tensor total = tensor({0});
  total.name("total").role(Role::counter);
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    add_(total, 1);
    return {in[0] * 2};
  });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  std::atomic<int> done{0}, refused{0};
  auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      try {
        const Tensor y = step({tensor({static_cast<float>(i)})})[0];
        if (values(y) == Floats{2.f * static_cast<float>(i)}) ++done;
      } catch (const CaptureError&) {
        ++refused;
      }
    }
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  EXPECT_EQ(done + refused, 400);
  EXPECT_EQ(values(total), Floats{static_cast<float>(done + 3)});
}

}  // namespace
}  // namespace tapedeck
