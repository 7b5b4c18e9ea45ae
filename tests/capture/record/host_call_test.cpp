// Tests host functions inside a capture: what they get, what they must return, and the gradients of an excluded stretch. The
// oracle is arithmetic by hand.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;
using testing::floats_of;
using testing::message_of;
using testing::without_folders;

Tensor integers(const std::vector<std::int64_t>& values) {
  return from_vector(values, {static_cast<std::int64_t>(values.size())});
}

// ---- what a function gets ----

TEST(HostCall, AFunctionGetsDenseOperands) {
  const auto seen = std::make_shared<std::vector<Floats>>();
  const HostFunction look = [seen](const Tensor& t) {
    EXPECT_TRUE(t.dense());
    seen->push_back(floats_of(t));
  };
  const Tensor six = from_vector(Floats{1, 2, 3, 4, 5, 6}, {2, 3});
  Capture scope("main");
  const Tensor x = scope.input("x", six), turned = transpose(x, {1, 0});
  on_host(turned, look);
  on_host(slice(x, 0, 1, 1), look);  // without elements
  scope.output("y", turned + 1);
  const Captured captured = scope.finish();
  Executor executor(make_plan(captured.graph));
  executor.set_input("x", six);
  executor.run();
  interpret(captured.graph, Tensors{six});
  const std::vector<Floats> once{{1, 4, 2, 5, 3, 6}, {}};
  ASSERT_EQ(seen->size(), 6u) << "the recording, the replay, the interpreter";
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ((*seen)[i], once[i % 2]) << i;
}

TEST(HostCall, ACaptureThatIsGoneTakesItsFunctionsAlong) {
  Graph graph;
  {
    Capture scope("main");
    const Tensor x = scope.input("x", tensor({1}));
    on_host(x, [](const Tensor&) {});
    scope.output("y", x + 1);
    graph = scope.finish().graph;
  }
  Executor executor(make_plan(graph));
  executor.set_input("x", tensor({1}));
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { executor.run(); }),
                  "[on_host] its function is not there: the graph was read from text, or the capture that held it is gone");
}

// ---- what a function must return ----

TEST(HostCall, AReplayMustReturnWhatTheRecordingReturned) {
  const struct {
    Tensors (*results)(const Tensor& x);
    const char* message;
  } cases[] = {
      {[](const Tensor&) { return Tensors{}; }, "the function returned 0 results, 1 when it was recorded"},
      {[](const Tensor& x) {
         return Tensors{x, x};
       },
       "the function returned 2 results, 1 when it was recorded"},
      {[](const Tensor&) { return Tensors{Tensor()}; },
       "the function returned an undefined tensor as result 0, f32[2] when it was recorded"},
      {[](const Tensor& x) { return Tensors{cast(x, DType::f64)}; },
       "the function returned f64[2] as result 0, f32[2] when it was recorded"},
  };
  for (const auto& wrong : cases) {
    bool replays = false;
    Capture scope("main");
    const Tensor x = scope.input("x", tensor({1, 2}));
    const Tensors ys =
        exclude_from_capture({x}, [&](const Tensors& xs) { return replays ? wrong.results(xs[0]) : Tensors{xs[0] * 2}; });
    scope.output("y", ys[0] + 1);
    const Captured captured = scope.finish();
    Executor executor(make_plan(captured.graph));
    executor.set_input("x", tensor({1, 2}));
    replays = true;
    EXPECT_MENTIONS(message_of<ExecutionError>([&] { executor.run(); }), wrong.message);
    replays = false;
    executor.run();
    EXPECT_EQ(floats_of(executor.output("y")), (Floats{3, 5})) << "the executor can run again";
  }
}

TEST(HostCall, ARecordedResultIsDefined) {
  Capture scope("main");
  const Tensor x = scope.input("x", tensor({1}));
  const HostStretch nothing = [](const Tensors&) { return Tensors{Tensor()}; };
  const int line = __LINE__ + 1;
  const std::string refusal = message_of<CaptureError>([&] { exclude_from_capture({x}, nothing); });
  EXPECT_EQ(without_folders(refusal), "[exclude_from_capture] the function returned an undefined tensor (host_call_test.cpp:" +
                                          std::to_string(line) + ")");
}

// ---- where no call can be recorded ----

TEST(HostCall, NothingIsRecordedWithoutData) {
  int calls = 0;
  const HostFunction tap = [&](const Tensor&) { ++calls; };
  const HostStretch stretch = [&](const Tensors& xs) { return ++calls, xs; };
  const std::string host = "[on_host] cannot be recorded without data",
                    excluded = "[exclude_from_capture] cannot be recorded without data";
  Capture scope("main");
  const Tensor x = scope.input("x", tensor({1})), abstract = abstract_tensor({DType::f32, {1}});
  EXPECT_MENTIONS(message_of<CaptureError>([&] { on_host(abstract, tap); }), host);
  EXPECT_MENTIONS(message_of<CaptureError>([&] { exclude_from_capture({x, abstract}, stretch); }), excluded);
  const AbstractMode mode;
  EXPECT_MENTIONS(message_of<CaptureError>([&] { on_host(x, tap); }), host);
  EXPECT_MENTIONS(message_of<CaptureError>([&] { exclude_from_capture({x}, stretch); }), excluded);
  EXPECT_EQ(calls, 0);
}

TEST(HostCall, NoStretchStandsInACheckpointRegion) {
  int calls = 0;
  Capture scope("main");
  const Tensor x = scope.input("x", tensor({1}));
  const std::string refusal = message_of<CaptureError>(
      [&] { checkpoint([&] { return exclude_from_capture({x}, [&](const Tensors& xs) { return ++calls, xs; })[0]; }); });
  EXPECT_MENTIONS(refusal,
                  "[exclude_from_capture] cannot stand inside a checkpoint region: backward would have to run it a third time");
  EXPECT_EQ(calls, 0);
}

// ---- gradients ----

// w * k and 2 w without gradient, for floating w and integers k; u is not used. The integer result has no gradient.
Tensors stretch_of(const Tensors& xs) {
  const Tensor w = xs[0], k = xs[1];
  return {k + 1, w * cast(k, DType::f32), w.detach() * 2};
}

TEST(HostCall, GradientsFlowToTheFloatingOperandsThatAreUsed) {
  Capture scope("main");
  const Tensor w = scope.input("w", tensor({1, 2, 3}).requires_grad(true)), k = scope.input("k", integers({2, 0, 5})),
               u = scope.input("u", tensor({7}).requires_grad(true));
  const Tensors ys = exclude_from_capture({w, k, u}, stretch_of);
  const Tensors dxs = gradients({sum(ys[1] * ys[2])}, {w, u});
  scope.output("next", ys[0]);
  scope.output("dw", dxs[0]);
  scope.output("du", dxs[1]);
  const Captured captured = scope.finish();
  EXPECT_EQ(floats_of(dxs[0]), (Floats{4, 0, 30})) << "2 w k";
  Executor executor(make_plan(captured.graph));
  executor.set_input("w", tensor({2, 2, -1}));
  executor.set_input("k", integers({1, 2, 3}));
  executor.set_input("u", tensor({7}));
  executor.run();
  EXPECT_TRUE(bit_equal(executor.output("next"), integers({2, 3, 4})));
  EXPECT_EQ(floats_of(executor.output("dw")), (Floats{4, 8, -6}));
  EXPECT_EQ(floats_of(executor.output("du")), Floats{0});
}

TEST(HostCall, AStretchWithoutGradientsGivesZeros) {
  Capture scope("main");
  const Tensor w = scope.input("w", tensor({1, 2}).requires_grad(true));
  const Tensors ys = exclude_from_capture({w}, [](const Tensors& xs) { return Tensors{xs[0].detach() * 3}; });
  scope.output("dw", gradients({sum(ys[0])}, {w})[0]);
  const Captured captured = scope.finish();
  Executor executor(make_plan(captured.graph));
  executor.set_input("w", tensor({1, 2}));
  executor.run();
  EXPECT_EQ(floats_of(executor.output("dw")), (Floats{0, 0}));
}

TEST(HostCall, BackwardMustSeeTheResultsOfForward) {
  const struct {
    Tensors (*results)(const Tensor& x);
    const char* floating;
  } cases[] = {
      {[](const Tensor& x) {
         return Tensors{x * 3, x * 4};
       },
       "2"},
      {[](const Tensor&) { return Tensors{Tensor()}; }, "0"},
      {[](const Tensor& x) { return Tensors{cast(x, DType::i64)}; }, "0"},
  };
  for (const auto& wrong : cases) {
    int calls = 0;
    Capture scope("main");
    const Tensor w = scope.input("w", tensor({1, 2}).requires_grad(true));
    const Tensors ys =
        exclude_from_capture({w}, [&](const Tensors& xs) { return ++calls == 1 ? Tensors{xs[0] * 3} : wrong.results(xs[0]); });
    EXPECT_MENTIONS(message_of<CaptureError>([&] { gradients({sum(ys[0])}, {w}); }),
                    std::string("[exclude_from_capture] the function returned ") + wrong.floating +
                        " floating results in backward, 1 in forward");
    EXPECT_EQ(calls, 2);
  }
}

}  // namespace
}  // namespace tapedeck
