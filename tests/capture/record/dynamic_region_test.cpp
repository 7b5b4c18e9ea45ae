// Tests boolean masks inside a capture. The ops whose sizes depend on the number of selected elements run without a plan; a
// capture that cannot do this is refused. The oracle is the eager run of the same code.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/dynamic.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <algorithm>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

Tensor mask_of(const std::vector<int>& held) {
  std::vector<unsigned char> bytes(held.begin(), held.end());
  return from_bytes(Type{DType::boolean, {static_cast<std::int64_t>(held.size())}}, bytes.data());
}

Tensor small_table() { return from_vector(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3}); }

std::size_t nodes_named(const Graph& g, std::string_view op) {
  return static_cast<std::size_t>(
      std::count_if(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return op == n.op->name; }));
}

TEST(DynamicRegion, T118_RowsByAMaskAndTheirGradient) {
  // Selects rows in eager code.
  const Tensor rows = boolean_mask(small_table(), mask_of({0, 1, 1}));
  EXPECT_TRUE(bit_equal(rows, from_vector(std::vector<float>{4, 5, 6, 7, 8, 9}, {2, 3})));

  // The gradient rows are 0, 1, 1. The same step is then replayed with other masks.
  Tensor x = small_table();
  x.name("x").role(Role::parameter);
  x.requires_grad(true);
  Capture capture("step");
  const Tensor mask = capture.input("mask", mask_of({0, 1, 1}));
  const Tensor total = sum(boolean_mask(x, mask));
  backward(total);
  capture.output("total", total);
  capture.output("gradient", x.grad());
  const Captured captured = capture.finish();
  EXPECT_EQ(nodes_named(captured.graph, "dynamic"), 1u) << print(captured.graph);
  EXPECT_EQ(nodes_named(captured.graph, "nonzero"), 0u) << "all inside";
  EXPECT_EQ(captured.counts, std::vector<std::int64_t>{2});
  EXPECT_EQ(print(parse(print(captured.graph))), print(captured.graph));

  const auto check = [&](const std::vector<int>& held, const std::vector<Tensor>& outputs) {
    std::vector<float> gradient;
    float sum = 0;
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) {
        gradient.push_back(static_cast<float>(held[i]));
        if (held[i]) sum += static_cast<float>(3 * i + k + 1);
      }
    EXPECT_EQ(outputs[0].item(), sum);
    EXPECT_TRUE(bit_equal(outputs[1], from_vector(gradient, {3, 3})));
  };
  Executor executor(make_plan(captured.graph));
  executor.bind_state("x", x);
  for (const std::vector<int>& held : {std::vector<int>{0, 1, 1}, {1, 0, 0}, {1, 1, 1}, {0, 0, 0}, {1, 0, 1}}) {
    check(held, run_eagerly(captured.graph, {mask_of(held)}, {x.detach()}).outputs);
    executor.set_input("mask", mask_of(held));
    executor.run();
    check(held, executor.outputs());
  }
}

// A network whose loss depends only on the selected rows.
struct Masked : Module {
  Linear fc{*this, "fc", 3, 4};
  Tensor operator()(const Tensor& x, const Tensor& mask) {
    const Tensor h = tanh(fc(x)), rows = boolean_mask(h, mask);
    const Tensor loss = log(add(sum(mul(rows, rows)), 1));
    return add(loss, sum(mul(h, 0.01)));
  }
};

std::vector<Tensor> train_masked(bool captured, const std::vector<std::vector<int>>& masks, int* recordings) {
  manual_seed(2);
  Masked net;
  Sgd optimizer(net.parameters(), {.lr = 0.125});
  const StepFunction fn = [&](const std::vector<Tensor>& in) {
    const Tensor loss = net(in[0], in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return std::vector<Tensor>{loss};
  };
  CapturedStep step = capture(fn);
  std::vector<Tensor> results;
  for (const std::vector<int>& held : masks) {
    std::vector<float> values;
    for (int i = 0; i < 15; ++i)
      values.push_back(static_cast<float>((i * 7 + static_cast<int>(results.size()) * 3) % 11) / 4 - 1);
    const std::vector<Tensor> in{from_vector(values, {5, 3}), mask_of(held)};
    results.push_back((captured ? step(in) : fn(in))[0].detach());
  }
  for (const Tensor& p : net.parameters()) results.push_back(copy(p.detach()));
  *recordings = step.recordings();
  return results;
}

TEST(DynamicRegion, ATrainingStepEqualsEagerWhateverTheMask) {
  const std::vector<std::vector<int>> masks{{0, 1, 1, 0, 1}, {1, 1, 0, 0, 0}, {1, 1, 1, 1, 1},
                                            {0, 0, 0, 0, 1}, {0, 0, 0, 0, 0}, {1, 0, 1, 1, 1}};
  int recordings = 0, none = 0;
  const std::vector<Tensor> eager = train_masked(false, masks, &none), captured = train_masked(true, masks, &recordings);
  EXPECT_EQ(recordings, 2);
  ASSERT_EQ(eager.size(), captured.size());
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(eager[i], captured[i])) << i;
}

TEST(DynamicRegion, ResultsOfASizeThatOnlyARunKnowsAreRefused) {
  const StepFunction rows = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{boolean_mask(in[0], in[1])}; };
  CapturedStep step = capture(rows);
  const std::string refused = message_of<CaptureError>([&] { step({small_table(), mask_of({0, 1, 1})}); });
  EXPECT_TRUE(mentions(refused, "is returned")) << refused;
  EXPECT_TRUE(mentions(refused, "give `count`")) << refused;
  EXPECT_TRUE(mentions(refused, "dynamic_region_test.cpp")) << refused;
  // With a fixed count the capture has an ordinary plan.
  const StepFunction counted = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{boolean_mask(in[0], in[1], 2)}; };
  CapturedStep fixed = capture(counted);
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(bit_equal(fixed({small_table(), mask_of({1, 0, 1})})[0], boolean_mask(small_table(), mask_of({1, 0, 1}))));
  EXPECT_EQ(fixed.replays(), 2);
}

TEST(DynamicRegion, AFullyStaticCaptureRefusesTheOp) {
  CapturedStepOptions options;
  options.fully_static = true;
  CapturedStep step =
      capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{sum(boolean_mask(in[0], in[1]))}; }, options);
  const std::string refused = message_of<CaptureError>([&] { step({small_table(), mask_of({0, 1, 1})}); });
  EXPECT_TRUE(mentions(refused, "[nonzero]")) << refused;
  EXPECT_TRUE(mentions(refused, "fully static")) << refused;
}

TEST(DynamicRegion, AShapeThatFitsOneCountIsRefused) {
  Capture capture("f");
  const Tensor x = capture.input("x", small_table()), mask = capture.input("mask", mask_of({0, 1, 1}));
  const Tensor rows = boolean_mask(x, mask);
  capture.output("y", sum(reshape(rows, {3, 2})));
  const std::string refused = message_of<CaptureError>([&] { capture.finish(); });
  EXPECT_TRUE(mentions(refused, "[reshape]")) << refused;
  EXPECT_TRUE(mentions(refused, "reduce what was selected first")) << refused;
}

TEST(DynamicRegion, ANumberComputedFromTheCountIsFoundOut) {
  // The step divides by the number of selected rows, which is a C++ number here and would be baked in.
  const StepFunction average = [](const std::vector<Tensor>& in) {
    const Tensor rows = boolean_mask(in[0], in[1]);
    return std::vector<Tensor>{mul(sum(rows), 1.0 / static_cast<double>(rows.numel()))};
  };
  {
    Capture capture("f");
    const Tensor x = capture.input("x", small_table()), mask = capture.input("mask", mask_of({0, 1, 1}));
    capture.output("y", average({x, mask})[0]);
    EXPECT_TRUE(mentions(message_of<CaptureError>([&] { capture.finish(); }), "one recording does not say"));
  }
  CapturedStep step = capture(average);
  const std::vector<int> two{0, 1, 1}, one{0, 0, 1};
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(bit_equal(step({small_table(), mask_of(two)})[0], average({small_table(), mask_of(two)})[0]));
  EXPECT_EQ(step.replays(), 0) << "equal counts prove nothing";
  EXPECT_TRUE(mentions(message_of<CaptureError>([&] { step({small_table(), mask_of(one)}); }), "a constant f32[] differs"));
  // If ops compute this number inside the capture, the result is right. Masks with two counts show it.
  const StepFunction inside = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{div(sum(boolean_mask(in[0], in[1])), mul(sum(cast(in[1], DType::f32)), 3))};
  };
  CapturedStep right = capture(inside);
  for (const auto& held : {two, two, std::vector<int>{1, 1, 1}, one, std::vector<int>{1, 0, 0}, two})
    EXPECT_TRUE(bit_equal(right({small_table(), mask_of(held)})[0], inside({small_table(), mask_of(held)})[0]));
  EXPECT_GE(right.replays(), 3);
}

TEST(DynamicRegion, MaskedSelectAndItsGradient) {
  const StepFunction fn = [](const std::vector<Tensor>& in) {
    const Tensor picked = masked_select(in[0], in[1]);
    return std::vector<Tensor>{sum(exp(picked)), max(picked)};
  };
  CapturedStep step = capture(fn);
  for (int i = 0; i < 5; ++i) {
    const Tensor x = mul(small_table(), 0.25 * (i + 1)), mask = greater(x, scalar(1.0 + i * 0.5));
    const std::vector<Tensor> want = fn({x, mask}), got = step({x, mask});
    for (int k = 0; k < 2; ++k) EXPECT_TRUE(bit_equal(want[k], got[k])) << i;
  }
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_TRUE(mentions(step.explain(), "runs unplanned, on bytes beside the planned peak")) << step.explain();
}

TEST(DynamicRegion, BytesOutsideThePlanDoNotCountAsItsPeak) {
  Capture capture("f");
  const Tensor x = capture.input("x", small_table()), mask = capture.input("mask", mask_of({0, 1, 1}));
  capture.output("y", sum(boolean_mask(x, mask)));
  const Captured captured = capture.finish();
  Executor executor(make_plan(captured.graph));
  executor.set_input("x", small_table());
  executor.set_input("mask", mask_of({1, 1, 1}));
  executor.run();
  EXPECT_EQ(executor.observed_peak_bytes(), executor.plan().peak_bytes);
}

TEST(DynamicRegion, ACaptureThatWasDroppedLeavesNothingBehind) {
  for (int i = 0; i < 3; ++i) {
    Capture capture("f");
    nonzero(capture.input("x", small_table()));
  }
  Capture capture("g");
  const Tensor x = capture.input("x", small_table());
  capture.output("y", nonzero(x, 9));
  EXPECT_TRUE(capture.finish().counts.empty());
}

}  // namespace
}  // namespace tapedeck
