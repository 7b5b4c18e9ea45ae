// Cases of SEEDS.md about MXNet's executor at several sizes, shape inference and dynamic shapes. Each test bears the number
// of its case. The oracles are numbers by hand.
#include <tapedeck/capture/analysis/shapes.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <atomic>
#include <thread>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

Tensor filled(const Shape& shape, float value) {
  return from_vector(std::vector<float>(static_cast<std::size_t>(shape.numel()), value), shape);
}
Type f32(const Shape& shape) { return {DType::f32, shape}; }

// y = x w + b with x: f32[5,4]. State w is set to ones, b to zeros.
Executor fully_connected() {
  Executor executor(make_plan(parse(R"(
    graph fc(%x: f32[5,4]) state(%w: f32[4,4], %b: f32[4]) {
      %y: f32[5,4] = linear(%x, %w, %b)
      return %y
    })")));
  executor.set_state("w", filled({4, 4}, 1));
  executor.set_state("b", filled({4}, 0));
  executor.set_input("x", filled({5, 4}, 1));
  return executor;
}

TEST(Reshape, T87_SmallerIsAPrefixOfTheSameMemoryLargerIsFresh) {
  Executor base = fully_connected();
  base.run();
  EXPECT_TRUE(bit_equal(base.output("y"), filled({5, 4}, 4)));

  Executor small = base.reshape({{"x", f32({3, 4})}});
  small.run();  // its input uses the first rows of the base's input
  EXPECT_TRUE(bit_equal(small.output("y"), filled({3, 4}, 4)));
  small.set_input("x", filled({3, 4}, 2));
  small.run();
  const std::vector<float> rows = base.output("y").to_vector<float>();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rows[i], i < 12 ? 8 : 4) << "the base's first three rows show it";
  base.set_input("x", filled({5, 4}, 1));
  base.run();
  EXPECT_TRUE(bit_equal(base.output("y"), filled({5, 4}, 4)));

  Executor large = base.reshape({{"x", f32({6, 4})}}, {.allow_up_sizing = true});
  large.set_input("x", filled({6, 4}, 0));
  large.run();
  EXPECT_TRUE(bit_equal(large.output("y"), filled({6, 4}, 0)));
  base.run();  // the base's input is its own: still 1
  EXPECT_TRUE(bit_equal(base.output("y"), filled({5, 4}, 4)));
  large.set_state("w", filled({4, 4}, 0));  // the family shares weights
  EXPECT_TRUE(bit_equal(base.state("w"), filled({4, 4}, 0)));
  base.run();
  EXPECT_TRUE(bit_equal(base.output("y"), filled({5, 4}, 0)));
  EXPECT_TRUE(check_plan(large.plan()).empty());
  EXPECT_TRUE(check_plan(small.plan()).empty());
}

TEST(Reshape, T87_WhatItRefuses) {
  const Executor base = fully_connected();
  const std::string larger = message_of<TypeError>([&] { base.reshape({{"x", f32({6, 4})}}); });
  EXPECT_TRUE(mentions(larger, "input 'x' would grow from f32[5,4] to f32[6,4]")) << larger;
  EXPECT_TRUE(mentions(larger, "allow_up_sizing")) << larger;
  EXPECT_TRUE(mentions(message_of<TypeError>([&] { base.reshape({{"z", f32({3, 4})}}); }), "no input 'z'"));
  EXPECT_TRUE(mentions(message_of<TypeError>([&] { base.reshape({{"x", f32({3, 4, 1})}}); }), "more than its sizes"));
  const std::string wrong = message_of<TypeError>([&] { base.reshape({{"x", f32({5, 3})}}); });
  EXPECT_TRUE(mentions(wrong, "linear")) << wrong;
}

TEST(Reshape, D15_AnInputThatChangesAndWasNotNamed) {
  Executor base(make_plan(parse(R"(
    graph f(%a: f32[5,4], %b: f32[5,4]) {
      %c: f32[5,4] = add(%a, %b)
      return %c
    })")));
  const std::string refused = message_of<TypeError>([&] { base.reshape({{"a", f32({3, 4})}}); });
  EXPECT_TRUE(mentions(refused, "input 'b' would change from f32[5,4] to f32[3,4] and was not named")) << refused;
  Executor both = base.reshape({{"a", f32({3, 4})}}, {.partial_shaping = true});
  both.set_input("a", filled({3, 4}, 1));
  both.set_input("b", filled({3, 4}, 2));
  both.run();
  EXPECT_TRUE(bit_equal(both.output("c"), filled({3, 4}, 3)));
}

TEST(Reshape, D15_AFamilyRunsOneAtATime) {
  // The product is large enough that the child's run meets a running base.
  Executor base(make_plan(parse(R"(
    graph f(%a: f32[700,700]) {
      %b: f32[700,700] = matmul(%a, %a)
      %c: f32[700,700] = matmul(%b, %a)
      %d: f32[700,700] = matmul(%c, %a)
      return %d
    })")));
  Executor child = base.reshape({{"a", f32({700, 700})}});
  base.set_input("a", filled({700, 700}, 0.001f));
  std::atomic<bool> done{false};
  std::thread thread([&] {
    for (bool ran = false; !ran;) {  // the child may be setting its input; then the base's run is refused
      try {
        base.run();
        ran = true;
      } catch (const ExecutionError&) {
      }
    }
    done = true;
  });
  bool refused = false;
  while (!done && !refused) {
    try {
      child.input_names();
      child.set_input("a", filled({700, 700}, 0.002f));
    } catch (const ExecutionError& error) {
      refused = true;
      EXPECT_TRUE(mentions(error.what(), "shares its memory")) << error.what();
    }
  }
  thread.join();
  EXPECT_TRUE(refused) << "the child was never refused while the base ran";
  child.set_input("a", filled({700, 700}, 0.002f));
  child.run();
  EXPECT_EQ(child.outputs().size(), 1u);
}

TEST(Reshape, TheFamilySharesStateThatIsBoundOrLostLater) {
  Executor base = fully_connected();
  Executor child = base.reshape({{"x", f32({2, 4})}});
  Tensor w = filled({4, 4}, 3);
  base.bind_state("w", w);
  child.run();
  EXPECT_TRUE(bit_equal(child.output("y"), filled({2, 4}, 12)));
  const std::int64_t peak = base.observed_peak_bytes();
  for (int i = 1; i < 5; ++i) {
    Executor other = base.reshape({{"x", f32({i, 4})}});
    other.run();
    EXPECT_EQ(other.observed_peak_bytes(), peak) << "a smaller member takes no memory";
  }
  child.bind_state("w", filled({4, 4}, 5));
  w = Tensor();
  base.run();
  EXPECT_TRUE(bit_equal(base.output("y"), filled({5, 4}, 20)));
}

TEST(Reshape, T88_BiasAfterStepsAtTwoBatchSizes) {
  // MXNet runs this on two devices with half of the batch each; on one device the sums are the same. The rate is 1, the head
  // gradient is 1, and gradients are rescaled by 1 / 7, as MXNet's optimizer does.
  Tensor w = filled({20, 20}, 0), b = filled({20}, 0);
  w.name("w").role(Role::parameter);
  b.name("b").role(Role::parameter);
  w.requires_grad(true);
  b.requires_grad(true);
  Tensor rescale = scalar(1.0 / 7);
  rescale.role(Role::input).name("rescale");
  Capture capture("step");
  const Tensor x = capture.input("x", filled({7, 20}, 0)), head = capture.input("head", filled({7, 20}, 1));
  const Tensor y = linear(x, w, b);
  backward(y, {.head = head});
  {
    const NoGrad no_grad;
    copy_(w, sub(w, mul(w.grad(), rescale)));
    copy_(b, sub(b, mul(b.grad(), rescale)));
  }
  capture.output("y", y);
  const Captured captured = capture.finish();
  for (float v : b.to_vector<float>()) EXPECT_FLOAT_EQ(v, -1);

  Executor small(make_plan(captured.graph));
  Executor large = small.reshape({{"x", f32({14, 20})}, {"head", f32({14, 20})}}, {.allow_up_sizing = true});
  small.bind_state("w", w);
  small.bind_state("b", b);
  large.set_input("rescale", scalar(1.0 / 7));
  large.set_input("x", filled({14, 20}, 0));
  large.set_input("head", filled({14, 20}, 1));
  large.run();
  EXPECT_EQ(large.output("y").shape(), (Shape{14, 20}));
  for (float v : b.to_vector<float>()) EXPECT_FLOAT_EQ(v, -3);
  for (float v : large.state("b").to_vector<float>()) EXPECT_FLOAT_EQ(v, -3);
}

// ---- shape inference from incomplete types ----

constexpr std::int64_t kNo = kUnknownSize;

PartialShape found(const Graph& g, const std::map<std::string, PartialShape>& known, const std::string& name) {
  return infer_shapes(g, known).at(name);
}

TEST(InferShapes, T90_ElementwiseFillsInBothWays) {
  const Graph g = parse("graph f(%a: f32[4,5], %b: f32[4,5]) { %c: f32[4,5] = add(%a, %b) return %c }");
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(found(g, {{"a", {kNo, 10}}, {"b", {12, kNo}}}, name), (PartialShape{12, 10})) << name;
}

TEST(InferShapes, T90_ThroughAFullyConnectedLayer) {
  const Graph g = parse(R"(graph f(%a: f32[4,5], %b: f32[4,7]) state(%w: f32[5,7]) {
    %h: f32[4,7] = linear(%a, %w)
    %c: f32[4,7] = add(%h, %b)
    return %c })");
  const std::map<std::string, PartialShape> known{{"a", {kNo, 10}}, {"b", {5, 21}}};
  EXPECT_EQ(found(g, known, "a"), (PartialShape{5, 10}));
  EXPECT_EQ(found(g, known, "w"), (PartialShape{10, 21}));
  EXPECT_EQ(found(g, known, "h"), (PartialShape{5, 21}));
}

TEST(InferShapes, T90_ThroughAConvolution) {
  const Graph g = parse(R"(graph f(%a: f32[2,6,9,9], %b: f32[2,4,7,7]) state(%w: f32[4,6,3,3]) {
    %h: f32[2,4,7,7] = conv2d(%a, %w)
    %c: f32[2,4,7,7] = add(%h, %b)
    return %c })");
  const std::map<std::string, PartialShape> known{{"a", {kNo, 10, kNo, kNo}}, {"b", {5, 21, 30, 32}}, {"w", {kNo, kNo, 3, 3}}};
  EXPECT_EQ(found(g, known, "a"), (PartialShape{5, 10, 32, 34}));
  EXPECT_EQ(found(g, known, "w"), (PartialShape{21, 10, 3, 3}));
}

TEST(InferShapes, T90_ThroughAConcatenation) {
  const Graph g = parse(R"(graph f(%a: f32[4,5], %b: f32[4,3], %d: f32[4,8]) {
    %c: f32[4,8] = concat(%a, %b) {axis=1}
    %e: f32[4,8] = add(%c, %d)
    return %e })");
  const std::map<std::string, PartialShape> known{{"a", {kNo, 10}}, {"b", {kNo, 5}}, {"d", {5, kNo}}};
  EXPECT_EQ(found(g, known, "a"), (PartialShape{5, 10}));
  EXPECT_EQ(found(g, known, "b"), (PartialShape{5, 5}));
  EXPECT_EQ(found(g, known, "d"), (PartialShape{5, 15}));
  EXPECT_EQ(found(g, {{"a", {5, 10}}, {"d", {kNo, 15}}}, "b"), (PartialShape{5, 5})) << "what the sum leaves";
}

TEST(InferShapes, T90_ThroughASlice) {
  const Graph g = parse(R"(graph f(%a: f32[4,10], %c: f32[4,2]) {
    %b: f32[4,2] = slice(%a) {starts=[0,2], stops=[4,4]}
    %d: f32[4,2] = add(%b, %c)
    return %d })");
  const std::map<std::string, PartialShape> known{{"a", {kNo, 10}}, {"c", {5, kNo}}};
  EXPECT_EQ(found(g, known, "a"), (PartialShape{5, 10})) << "the axis that is whole";
  EXPECT_EQ(found(g, known, "b")[0], 5);
}

TEST(InferShapes, T90_WeightFromTheOutput) {
  const Graph g = parse(R"(graph f(%data: f32[3,5], %wshift: f32[1]) state(%w: f32[5,2]) {
    %wt: f32[5,2] = add(%w, %wshift)
    %y: f32[3,2] = linear(%data, %wt)
    return %y })");
  EXPECT_EQ(found(g, {{"data", {7, 100}}, {"y", {kNo, 11}}, {"wshift", {1}}}, "w"), (PartialShape{100, 11}))
      << "ours are [in,out]";
}

TEST(InferShapes, T91_ContradictionsNameTheNode) {
  const Graph g = parse(R"(graph f(%x: f32[4,5], %b: f32[7]) state(%w: f32[5,7], %v: f32[7,3]) {
    %h: f32[4,7] = linear(%x, %w, %b)
    %y: f32[4,3] = linear(%h, %v)
    return %y })");
  const std::string hidden = message_of<TypeError>([&] {
    infer_shapes(g, {{"x", {100, 100}}, {"w", {100, 30}}, {"v", {20, 10}}});
  });
  EXPECT_TRUE(mentions(hidden, "[linear]")) << hidden;
  EXPECT_TRUE(mentions(hidden, "30")) << hidden;
  EXPECT_TRUE(mentions(hidden, "20")) << hidden;
  EXPECT_TRUE(mentions(message_of<TypeError>([&] { infer_shapes(g, {{"nobody", {1}}}); }), "no value 'nobody'"));
  EXPECT_TRUE(mentions(message_of<TypeError>([&] { infer_shapes(g, {{"x", {1}}}); }), "2 dimensions"));
}

}  // namespace
}  // namespace tapedeck
