// Tests eager_fallback (C9, T79, T82): a captured step whose calls cannot all be captured. The oracle is an eager twin, which
// must have the same bits after every call. The function runs once in every call that does not replay.
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/print.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/step/dropout_net.h>
#include <tapedeck/tests/capture/step/footguns.h>

#include <exception>
#include <functional>

namespace tapedeck {
namespace {

using testing::message_of;

CapturedStepOptions falling_back(CaptureMode mode = CaptureMode::replay) {
  CapturedStepOptions options;
  options.mode = mode;
  options.eager_fallback = true;
  return options;
}

// ---- training ----

constexpr int kSteps = 12;

// A program that trains a net with dropout. Call number i has `rows[i % size]` examples and the loss that `loss` says.
struct Program {
  std::vector<std::int64_t> rows = {5};
  std::function<Tensor(int i, const Tensor& difference)> loss = [](int, const Tensor& d) { return mean(square(d)); };
};

struct Trained {
  Tensors results;  // the losses, then the parameters at the end
  int runs = 0;     // of the function
  int recordings = 0, replays = 0, checks = 0, eager = 0;
  std::string reason, explanation;
};

Trained train_program(const Program& program, const CapturedStepOptions* options) {
  manual_seed(3);
  testing::DropoutNet net;
  AdamW optimizer(net.parameters(), {.lr = 1e-2});
  Trained trained;
  int i = 0;
  const StepFunction run = [&](const Tensors& in) -> Tensors {
    ++trained.runs;
    const Tensor loss = program.loss(i, net(in[0]) - in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  };
  CapturedStep step = capture(run, options ? *options : CapturedStepOptions());
  for (; i < kSteps; ++i) {
    const std::int64_t rows = program.rows[static_cast<std::size_t>(i) % program.rows.size()];
    const Tensors in = {full({rows, 3}, 0.25 * i - 1), full({rows, 2}, 0.5)};
    trained.results.push_back((options ? step(in) : run(in))[0].detach());
  }
  for (const Tensor& p : net.parameters()) trained.results.push_back(copy(p.detach()));
  trained.recordings = step.recordings();
  trained.replays = step.replays();
  trained.checks = step.checks();
  trained.eager = step.eager_calls();
  trained.reason = step.last_eager_reason();
  trained.explanation = step.explain() + step.explain_json();
  return trained;
}

Trained train_as_eager(const Program& program, const CapturedStepOptions& options = falling_back()) {
  const Trained eager = train_program(program, nullptr);
  Trained captured = train_program(program, &options);
  EXPECT_EQ(captured.results.size(), eager.results.size());
  for (std::size_t i = 0; i < eager.results.size(); ++i)
    EXPECT_TRUE(bit_equal(captured.results[i], eager.results[i])) << "result " << i;
  EXPECT_EQ(captured.runs + captured.replays, kSteps) << "a call ran the function twice";
  return captured;
}

Tensor either(bool other, const Tensor& d) { return other ? mean(abs(d)) : mean(square(d)); }

TEST(EagerFallback, TwoShapesNeedNone) {
  const Trained t = train_as_eager({.rows = {5, 7}});
  EXPECT_EQ(t.eager, 0);
  EXPECT_EQ(t.reason, "");
  EXPECT_EQ(t.replays, kSteps - 4);
}

TEST(EagerFallback, TwoBranchesInTurn) {
  const Program program = {.loss = [](int i, const Tensor& d) { return either(i % 2 == 1, d); }};
  const Trained t = train_as_eager(program);
  EXPECT_EQ(t.eager, kSteps - 1) << "all calls but the first";
  EXPECT_EQ(t.recordings, 2);
  EXPECT_MENTIONS(t.reason, "did something else on its second call");
  EXPECT_MENTIONS(t.explanation, "ran 11 times eagerly by eager_fallback; the reason of the last eager call: [capture]");
  EXPECT_MENTIONS(t.explanation, "\"fallbacks\":11");
}

TEST(EagerFallback, TwoBranchesAtTwoShapes) {
  const Program program = {.rows = {5, 7}, .loss = [](int i, const Tensor& d) { return either(i / 2 % 2 == 1, d); }};
  const Trained t = train_as_eager(program);
  EXPECT_EQ(t.recordings, 3) << "the first call that differs shows that no shape has one program";
  EXPECT_EQ(t.eager, kSteps - 2);
}

// Branches that come after a replay has begun are seen by checked calls. The calls that agree are still checked.
TEST(EagerFallback, TwoBranchesInCheckedMode) {
  const Program program = {.loss = [](int i, const Tensor& d) { return either(i > 3 && i % 2 == 1, d); }};
  const Trained t = train_as_eager(program, falling_back(CaptureMode::checked));
  EXPECT_EQ(t.recordings, 2);
  EXPECT_EQ(t.eager, 4) << "calls 5, 7, 9 and 11";
  EXPECT_EQ(t.checks, kSteps - 6);
  EXPECT_MENTIONS(t.reason, "mismatch at node");
}

TEST(EagerFallback, ACheckByNumberEndsTheReplays) {
  CapturedStepOptions options = falling_back();
  options.check_every = 3;
  // Calls 2 and 3 replay, and call 4 is checked.
  const Program program = {.loss = [](int i, const Tensor& d) { return either(i >= 4, d); }};
  const Trained t = train_as_eager(program, options);
  EXPECT_EQ(t.replays, 2);
  EXPECT_EQ(t.eager, kSteps - 4);
}

TEST(EagerFallback, ANumberThatChanges) {
  const Trained t = train_as_eager({.loss = [](int i, const Tensor& d) { return mean(square(d)) * (1.0 + i); }});
  EXPECT_EQ(t.eager, kSteps - 1);
  EXPECT_MENTIONS(t.reason, "pass it as an input");
}

TEST(EagerFallback, AHostReadDecides) {
  std::vector<double> seen;
  const Program program = {.loss = [&](int, const Tensor& d) {
    const Tensor loss = mean(square(d));
    seen.push_back(loss.item());
    return seen.back() > 0.5 ? loss * 0.5 : loss;
  }};
  const Trained t = train_as_eager(program);
  EXPECT_EQ(t.eager, kSteps);
  EXPECT_EQ(t.recordings, 1);
  EXPECT_MENTIONS(t.reason, "[item] reads a tensor on the host inside a capture");
  EXPECT_MENTIONS(t.explanation, "first call; then its calls run eagerly: [item]");
  ASSERT_EQ(seen.size(), std::size_t{2 * kSteps});
  for (int i = 0; i < kSteps; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], seen[static_cast<std::size_t>(i + kSteps)]);
}

// The host reads at one shape only, so the other shape replays.
TEST(EagerFallback, OneKindOfCallPrints) {
  std::string printed;
  const Program program = {.rows = {5, 7}, .loss = [&](int, const Tensor& d) {
                             const Tensor loss = mean(square(d));
                             if (d.size(0) == 7) {
                               printed += to_string(loss);
                               printed += std::to_string(loss.to_vector<float>()[0]);
                             }
                             return loss;
                           }};
  const Trained t = train_as_eager(program);
  EXPECT_EQ(t.eager, kSteps / 2);
  EXPECT_EQ(t.replays, kSteps / 2 - 2);
  EXPECT_MENTIONS(t.reason, "[to_string] reads a tensor on the host");
  EXPECT_EQ(printed.substr(0, printed.size() / 2), printed.substr(printed.size() / 2)) << "the twin printed the same";
}

// In a checked call the host reads for the first time.
TEST(EagerFallback, AHostReadInACheckedCall) {
  const Program program = {.loss = [](int i, const Tensor& d) {
    const Tensor loss = mean(square(d));
    if (i == 5) loss.item();
    return loss;
  }};
  const Trained t = train_as_eager(program, falling_back(CaptureMode::checked));
  EXPECT_EQ(t.eager, 1);
  EXPECT_EQ(t.checks, kSteps - 3);
}

// ---- results and gradients of a call that falls back ----

TEST(EagerFallback, AnInputIsWritten) {
  CapturedStep step = capture(
      [](const Tensors& in) -> Tensors {
        add_(in[0], 1);
        return {in[0], in[0] * 2};
      },
      falling_back());
  const Tensor x = tensor({1, 2});
  const Tensors first = step({x});
  EXPECT_EQ(values(x), (Floats{2, 3}));
  EXPECT_EQ(values(first[1]), (Floats{4, 6}));
  EXPECT_MENTIONS(step.last_eager_reason(), "is modified in place inside the step");
  step({x});
  EXPECT_EQ(values(x), (Floats{3, 4}));
  EXPECT_EQ(values(first[0]), (Floats{2, 3})) << "results of the recorded call belong to the caller";
  EXPECT_EQ(step.eager_calls(), 2);
  EXPECT_EQ(step.captured(), nullptr);
  EXPECT_MENTIONS(message_of<UsageError>([&] { step.state_names(); }), "the captured step runs eagerly: ");
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { step.value("x"); }), "the captured step runs eagerly: ");
}

// The step gives results and eager code takes their gradient: in the recorded call too.
TEST(EagerFallback, BackwardOutside) {
  Tensor w = tensor({2, 3}), twin = tensor({2, 3});
  w.requires_grad(true);
  twin.requires_grad(true);
  int calls = 0;
  const auto f = [](const Tensor& x, const Tensor& v, bool other) { return other ? exp(x * v) : x * v; };
  CapturedStep differs = capture([&](const Tensors& in) -> Tensors { return {f(in[0], w, ++calls % 2 == 0)}; }, falling_back());
  for (int i = 1; i < 6; ++i) {
    const Tensor x = tensor({0.5f, 0.25f}) * i;
    backward(sum(differs({x})[0]));
    backward(sum(f(x, twin, i % 2 == 0)));
    EXPECT_TRUE(bit_equal(w.grad(), twin.grad())) << i;
  }
  EXPECT_EQ(differs.eager_calls(), 3) << "the second call is of another kind, because w has a gradient now";

  CapturedStep reads = capture(
      [&](const Tensors& in) -> Tensors {
        const Tensor y = f(in[0], w, true);
        return {y.to_vector<float>()[0] > 0 ? y : y * 2};
      },
      falling_back());
  for (int i = 1; i < 4; ++i) {
    const Tensor x = tensor({0.5f, 0.25f}) * i;
    backward(sum(reads({x})[0]));
    backward(sum(f(x, twin, true)));
    EXPECT_TRUE(bit_equal(w.grad(), twin.grad())) << i;
  }
  EXPECT_EQ(reads.eager_calls(), 3);
}

TEST(EagerFallback, StateMadeAnewInEveryCall) {
  CapturedStep step = capture(
      [](const Tensors& in) -> Tensors {
        Tensor s = tensor({3});
        s.name("s").role(Role::statistic);
        return {in[0] * s};
      },
      falling_back());
  for (int i = 1; i < 5; ++i)
    EXPECT_EQ(values(step({tensor({static_cast<float>(i)})})[0]), Floats{3.f * static_cast<float>(i)});
  EXPECT_EQ(step.eager_calls(), 3);
  EXPECT_MENTIONS(step.last_eager_reason(), "make it once, outside");
}

// ---- calls that never reach the function's capture ----

TEST(EagerFallback, UndefinedInputs) {
  CapturedStep step =
      capture([](const Tensors& in) -> Tensors { return {in[1].defined() ? in[0] + in[1] : in[0]}; }, falling_back());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({1}), tensor({2})})[0]), Floats{3});
  EXPECT_EQ(values(step({tensor({1}), Tensor()})[0]), Floats{1});
  EXPECT_MENTIONS(step.last_eager_reason(), "input 1 ('in1') of the step is undefined");
  EXPECT_EQ(values(step({tensor({1}), tensor({2})})[0]), Floats{3});
  EXPECT_EQ(step.replays(), 2);
  EXPECT_EQ(step.eager_calls(), 1);
}

TEST(EagerFallback, SizesOutsideTheirRange) {
  CapturedStepOptions options = falling_back();
  options.input_names = {"x"};
  options.dims.ranges = {{"b", 1, 8}};
  options.dims.inputs = {{"x", {"b"}}};
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {exp(in[0]) * 2}; }, options);
  for (std::int64_t n : {4, 9, 8, 9, 5, 4}) {
    const Tensor x = full({n}, 0.5);
    EXPECT_TRUE(bit_equal(step({x})[0], exp(x) * 2)) << n;
  }
  EXPECT_EQ(step.eager_calls(), 2);
  EXPECT_EQ(step.recordings(), 2) << step.explain();
  EXPECT_EQ(step.replays(), 2);
}

// With named dimensions, recordings at other sizes do not bring back a program that was found to differ.
TEST(EagerFallback, BranchesWithNamedDimensions) {
  CapturedStepOptions options = falling_back();
  options.input_names = {"x"};
  options.dims.ranges = {{"b", 1, 8}};
  options.dims.inputs = {{"x", {"b"}}};
  int calls = 0;
  CapturedStep step =
      capture([&](const Tensors& in) -> Tensors { return {++calls % 2 == 0 ? exp(in[0]) : tanh(in[0])}; }, options);
  for (int i = 1; i < 9; ++i) {
    const Tensor x = full({1 + i / 3}, 0.5);
    EXPECT_TRUE(bit_equal(step({x})[0], i % 2 == 0 ? exp(x) : tanh(x))) << i;
  }
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(step.replays(), 0);
}

TEST(EagerFallback, DrawsAreCountedToo) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] + uniform({2})}; });
  for (int i = 0; i < 20; ++i) step({tensor({1, 2})});
  EXPECT_GT(step.eager_calls(), 0);
  EXPECT_MENTIONS(step.last_eager_reason(), "next_step()");
}

// ---- errors that come out all the same ----

TEST(EagerFallback, T79_AnExceptionOfTheFunctionIsTheSameObject) {
  for (CaptureMode mode : {CaptureMode::replay, CaptureMode::checked})
    for (bool fallback : {false, true}) {
      CapturedStepOptions options = falling_back(mode);
      options.eager_fallback = fallback;
      Tensor w = tensor({0});
      w.name("w").role(Role::counter);
      struct Mine {};
      const std::exception_ptr mine = std::make_exception_ptr(Mine());
      int calls = 0, throws_at = 0;
      CapturedStep step = capture(
          [&](const Tensors& in) -> Tensors {
            add_(w, 1);
            if (++calls == throws_at) std::rethrow_exception(mine);
            return {in[0] * w};
          },
          options);
      float done = 0;
      // The exception comes in the first recording, in the second, and in a call that would run in any mode.
      for (int failing : {1, 3, mode == CaptureMode::checked ? 5 : 0}) {
        throws_at = failing;
        if (failing > 0) {
          bool same = false;
          try {
            step({tensor({2})});
          } catch (...) {
            same = std::current_exception() == mine;
          }
          EXPECT_TRUE(same) << failing;
          ++done;
        }
        ++done;
        EXPECT_EQ(values(step({tensor({2})})[0]), Floats{2 * done}) << "the next call works";
      }
      EXPECT_EQ(values(w), Floats{done});
      EXPECT_EQ(step.eager_calls(), 0);
      EXPECT_EQ(step.recordings(), 2);
    }
}

// Half of the function has run, so its effects stand and it does not run again. The calls after it run eagerly.
TEST(EagerFallback, AnOpThatNoCaptureAllows) {
  Tensor w = tensor({0}), bytes = tensor({0});
  int runs = 0;
  CapturedStep step = capture(
      [&](const Tensors& in) -> Tensors {
        ++runs;
        add_(w, 1);
        static_cast<float*>(bytes.mutable_data())[0] = static_cast<float>(runs);
        return {in[0] * w};
      },
      falling_back());
  EXPECT_MENTIONS(refused(step, {tensor({1})}), "[mutable_data] writes a tensor from the host inside a capture");
  EXPECT_EQ(values(w), Floats{1});
  EXPECT_EQ(step.eager_calls(), 0);
  for (float i = 2; i < 5; ++i) EXPECT_EQ(values(step({tensor({1})})[0]), Floats{i});
  EXPECT_EQ(values(bytes), Floats{4});
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(step.eager_calls(), 3);
  EXPECT_MENTIONS(step.last_eager_reason(), "[mutable_data]");
}

// No graph can be made of the run, and its result would have no gradient to give.
TEST(EagerFallback, AGradientWithoutAGraph) {
  Tensor w = tensor({2});
  w.requires_grad(true);
  CapturedStep step = capture(
      [&](const Tensors& in) -> Tensors {
        add_(in[0], 1);
        return {in[0] * w};
      },
      falling_back());
  const Tensor x = tensor({1});
  EXPECT_MENTIONS(refused(step, {x}), "is modified in place inside the step");
  EXPECT_EQ(values(x), Floats{2});
  const Tensor y = step({x})[0];
  EXPECT_EQ(values(y), Floats{6});
  backward(sum(y));
  EXPECT_EQ(values(w.grad()), Floats{3});
  EXPECT_EQ(step.eager_calls(), 1);
}

TEST(EagerFallback, BackwardInsideThatLeavesTheStep) {
  Tensor w = tensor({3});
  w.requires_grad(true);
  CapturedStep step = capture(
      [](const Tensors& in) -> Tensors {
        const Tensor loss = sum(square(in[0]));
        backward(loss);
        return {loss};
      },
      falling_back());
  EXPECT_MENTIONS(refused(step, {w * 2}), "whose gradient history began before the step");
  EXPECT_EQ(values(step({w * 2})[0]), Floats{36});
  EXPECT_EQ(values(w.grad()), Floats{24});
}

TEST(EagerFallback, ABudgetThatNoPlanMeets) {
  CapturedStepOptions options = falling_back();
  options.plan.budget = 1;
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {exp(in[0])}; }, options);
  step({tensor({1})});
  EXPECT_THROW(step({tensor({1})}), InfeasibleError);
  EXPECT_EQ(step.eager_calls(), 0);
}

TEST(EagerFallback, ForgettingRecordsAgain) {
  bool reads = true;
  CapturedStep step = capture(
      [&](const Tensors& in) -> Tensors {
        const Tensor y = in[0] * 2;
        if (reads) y.item();
        return {y};
      },
      falling_back());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({1})})[0]), Floats{2});
  EXPECT_EQ(step.replays(), 0);
  reads = false;
  step.forget();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(step({tensor({1})})[0]), Floats{2});
  EXPECT_EQ(step.replays(), 1);
  EXPECT_EQ(step.eager_calls(), 3);
}

// The reads that pass are those of the step's own capture: another capture, which the step keeps out of its own, still refuses.
TEST(EagerFallback, ACaptureInAnExcludedStretchStillRefuses) {
  int refusals = 0;
  CapturedStep step = capture(
      [&](const Tensors& in) -> Tensors {
        return exclude_from_capture(in, [&](const Tensors& xs) -> Tensors {
          Capture scope("inner");
          try {
            xs[0].item();
          } catch (const CaptureError&) {
            ++refusals;
          }
          return {xs[0]};
        });
      },
      falling_back());
  EXPECT_EQ(values(step({tensor({1})})[0]), Floats{1});
  EXPECT_EQ(refusals, 1);
  EXPECT_EQ(step.eager_calls(), 0);
}

}  // namespace
}  // namespace tapedeck
