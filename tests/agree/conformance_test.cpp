// The conformance cases that need capture or planning. T51, W2 and W3 run a program in every way of harness.h and expect the
// same bits. T44, T45 and T50 compare captured steps with known numbers or with eager results. W4 and W9 check the plans.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/tests/agree/harness.h>

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::agree {
namespace {

void expect_agreement(const Builder& build) {
  const Verdict verdict = check_agreement(build);
  EXPECT_TRUE(verdict.agrees()) << verdict.text();
}

Tensor tensor_from(std::int64_t n, const std::function<double(std::int64_t)>& element) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(element(i)));
  return from_vector(values, {n});
}

// ---- T44, T45: a module trains side paths of rank 2 beside a frozen layer, inside checkpoint regions ----

struct Lora : Module {
  Lora(Module& parent, const std::string& name)
      : Module(parent, name),
        base(*this, "base", 10, 10),
        down(parameter("down", initial_uniform(*this, "down", {10, 2}, 10))),
        up(parameter("up", zeros({2, 10}))) {
    base.weight.requires_grad(false);
    base.bias.requires_grad(false);
  }
  Tensor operator()(const Tensor& x) { return base(x) + matmul(matmul(x, down), up); }
  Linear base;
  Tensor down, up;
};

struct LoraTraining {
  double worst = 0;  // the greatest |y - target| after all steps
  bool base_moved = false, sides_moved = true;
};
using Loss = Tensor (*)(const Tensor& error);

template <class Net>
LoraTraining train_lora(const std::function<Tensor(Net&, const Tensor&)>& forward, const std::vector<Lora*> (*layers)(Net&),
                        Loss loss_of, double lr, int steps, bool captured) {
  manual_seed(7);
  Net net;
  Tensors side, bases, before;
  for (Lora* layer : layers(net)) {
    side.insert(side.end(), {layer->down, layer->up});
    bases.insert(bases.end(), {layer->base.weight, layer->base.bias});
  }
  for (const Tensors* all : {&bases, &side})
    for (const Tensor& t : *all) before.push_back(copied(t));
  Sgd sgd(side, {.lr = lr});
  const Tensor x = reshape(tensor_from(10, [](std::int64_t i) { return i; }), {1, 10}),
               target = reshape(tensor_from(10, [](std::int64_t i) { return 10 - i; }), {1, 10});
  LoraTraining result;
  const auto step = [&](const Tensors& in) -> Tensors {
    const Tensor y = forward(net, in[0]);
    const Tensor loss = loss_of(y - in[1]);
    backward(loss);
    sgd.step();
    sgd.zero_grad();
    return {loss};
  };
  CapturedStep replayed = capture(step);
  for (int i = 0; i < steps; ++i) captured ? replayed({x, target}) : step({x, target});
  const NoGrad no_grad;
  const Tensor errors = abs(forward(net, x) - target);
  result.worst = max(errors).item();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool moved = !bit_equal(before[i], i < bases.size() ? bases[i] : side[i - bases.size()]);
    if (i < bases.size())
      result.base_moved |= moved;
    else
      result.sides_moved &= moved;
  }
  return result;
}

struct OneLora : Module {
  Lora layer{*this, "layer"};
};
const std::vector<Lora*> layers_of_one(OneLora& net) { return {&net.layer}; }
Tensor checkpointed_layer(OneLora& net, const Tensor& x) {
  return checkpoint([&] { return net.layer(x); });
}

TEST(Conformance, T44_LoraGemmWithCheckpointing) {
  for (bool captured : {false, true}) {
    const LoraTraining r = train_lora<OneLora>(
        checkpointed_layer, layers_of_one, [](const Tensor& e) { return mean(square(e)); }, 0.01, 11, captured);
    EXPECT_LE(r.worst, 1e-2) << "captured: " << captured;
    EXPECT_FALSE(r.base_moved);
    EXPECT_TRUE(r.sides_moved);
  }
}

struct ThreeLoras : Module {
  Lora a{*this, "a"}, b{*this, "b"}, c{*this, "c"};
};
const std::vector<Lora*> layers_of_three(ThreeLoras& net) { return {&net.a, &net.b, &net.c}; }
Tensor three_layers(ThreeLoras& net, const Tensor& x) { return net.c(gelu(net.b(gelu(net.a(x))))); }

TEST(Conformance, T45_LoraMlpWithCheckpointing) {
  const auto kept = [](ThreeLoras& net, const Tensor& x) { return checkpoint([&] { return three_layers(net, x); }); };
  for (bool captured : {false, true}) {
    const LoraTraining r = train_lora<ThreeLoras>(
        kept, layers_of_three, [](const Tensor& e) { return sum(square(e)) * 0.5; }, 0.001, 101, captured);
    EXPECT_LE(r.worst, 1e-1) << "captured: " << captured;
    EXPECT_FALSE(r.base_moved);
    EXPECT_TRUE(r.sides_moved);
  }
}

// ---- T50, T51: gradients of loops ----

// Computes x = x y + x y six times. Each variant reads other values after the loop: the last summand, the last x, or both
// summands (variant 3).
double loop_of_sums(int variant) {
  const auto once = [](const Tensors& c) -> Tensors {
    const Tensor z1 = c[0] * c[1], p = c[0] * c[1];
    return {z1 + p, c[1], z1, p, c[4] + 1};
  };
  const auto run = [&](const Tensors& in) -> Tensors {
    const Tensor none = zeros({1});
    const LoopResult r =
        while_loop([](const Tensors& c) { return less(c[4], 6); }, once, {in[0], in[1], none, none, zeros({}, DType::i64)});
    return {variant == 3 ? r.carried[2] + r.carried[3] + r.carried[0] : r.carried[variant == 1 ? 2 : 3] + r.carried[0]};
  };
  CapturedStep step = capture(run);
  const Tensor x = from_vector(std::vector<float>{0.5f}, {1}), y = from_vector(std::vector<float>{1.1f}, {1});
  const Tensor eager = run({x, y})[0];
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bit_equal(step({x, y})[0], eager)) << "simplified or not";
  return eager.item();
}

TEST(Conformance, T50_LoopsAreUnchangedBySimplification) {
  double r = 0.5;
  for (int i = 0; i < 6; ++i) r = r * 1.1 * 2;
  EXPECT_NEAR(r, 56.689952, 1e-5);
  EXPECT_NEAR(loop_of_sums(1), 85.034928, 1e-4);
  EXPECT_NEAR(loop_of_sums(2), 85.034928, 1e-4);
  EXPECT_NEAR(loop_of_sums(3), 113.379904, 1e-4);
}

Tensor fifth_power_times(const Tensor& x, const Tensor& y) {
  const LoopResult r = while_loop([](const Tensors& c) { return less(c[1], 5); },
                                  [=](const Tensors& c) -> Tensors {
                                    return {c[0] * x, c[1] + 1};
                                  },
                                  {y, zeros({}, DType::i32)});
  return r.carried[0];
}

TEST(Conformance, T51_FifthPowerByALoop) {
  const Tensor x = scalar(0.92), y = scalar(3.2), z = scalar(1.2);
  EXPECT_NEAR(fifth_power_times(x, y).item(), 2.1090609, 1e-6);
  const auto around = [](const Tensors& in) -> Tensors { return {in[2] * fifth_power_times(in[0], in[1]) + in[2]}; };
  EXPECT_NEAR(around({x, y, z})[0].item(), 3.7308730, 1e-6);
  CapturedStep step = capture(around);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(step({x, y, z})[0].item(), 3.7308730, 1e-6);
  expect_agreement([](Program& p) {
    p.input({}, {0.8, 1});
    const Tensor w = p.parameter("w", {}, {2, 4});
    p.train([=](const Tensors& in) -> Tensors { return {fifth_power_times(in[0], w) * w + w}; }, {w});
  });
}

// ---- weaknesses of the seed systems (W cases of SEEDS.md) ----

// One region computes two results. Backward reads both. The region returns the first; the second leaves it through a
// captured variable.
Tensors two_results(const Tensor& x, const Tensor& w) {
  Tensor second;
  const Tensor first = checkpoint([&] {
    const Tensor h = sin(x * w);
    second = exp(h * 0.5);
    return tanh(h);
  });
  return {first, second};
}

TEST(Weakness, W2_ARegionWithTwoResults) {
  const Builder build = [](Program& p) {
    p.input({4});
    const Tensor w = p.parameter("w", {4});
    p.train(
        [=](const Tensors& in) -> Tensors {
          const Tensors y = two_results(in[0], w);
          return {sum(square(y[0]) * sin(y[1])), y[0], y[1]};
        },
        {w});
  };
  expect_agreement(build);
  // The gradient must equal the gradient of the same formula without a region.
  const Tensor x = tensor_from(4, [](std::int64_t i) { return 0.3 * static_cast<double>(i) - 0.4; });
  Tensor w = tensor_from(4, [](std::int64_t i) { return 0.2 * static_cast<double>(i) + 0.1; });
  w.requires_grad(true);
  const Tensors y = two_results(x, w);
  backward(sum(square(y[0]) * sin(y[1])));
  const Tensor kept = w.grad();
  w.set_grad(Tensor());
  const Tensor h = sin(x * w);
  backward(sum(square(tanh(h)) * sin(exp(h * 0.5))));
  EXPECT_TRUE(bit_equal(kept, w.grad()));
}

TEST(Weakness, W3_DropoutInARegionDrawsTheSameMaskAgain) {
  const auto body = [](const Tensor& x) { return dropout(sin(x * 3), 0.5); };
  expect_agreement([&](Program& p) {
    p.input({8, 8});
    const Tensor w = p.parameter("w", {8, 8});
    p.train(
        [=](const Tensors& in) -> Tensors {
          const Tensor y = checkpoint([&] { return body(in[0] * w); });
          return {sum(square(y)), y};
        },
        {w});
  });
  // The gradient must be zero exactly where the forward pass dropped an element: then the recomputed mask equals the first
  // mask.
  manual_seed(3);
  Tensor w = normal({64}).requires_grad(true);
  const Tensor y = checkpoint([&] { return body(w); });
  backward(sum(square(y)));
  const std::vector<float> values = y.detach().to_vector<float>(), slopes = w.grad().to_vector<float>();
  int dropped = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i] == 0, slopes[i] == 0) << i;
    dropped += values[i] == 0;
  }
  EXPECT_GT(dropped, 10);
  EXPECT_LT(dropped, 54);
}

Captured captured_training(const std::function<Tensor(const Tensor& x, const Tensor& w)>& loss, const Type& type) {
  const Tensor x = drawn(type, {-1, 1}, 1);
  Tensor w = drawn(type, {-1, 1}, 2);
  w.requires_grad(true).role(Role::parameter).name("w");
  Capture capture("step");
  const Tensor in = capture.input("x", x), l = loss(in, w);
  backward(l);
  capture.output("loss", l);
  capture.output("dw", w.grad());
  return capture.finish();
}

TEST(Weakness, W4_AClonesOperandIsNotKeptForTheCloneAlone) {
  const Type type{DType::f32, {64, 64}};
  const Captured captured = captured_training(
      [](const Tensor& x, const Tensor& w) {
        const Tensor c = x * w;            // the value C of case W4 in SEEDS.md
        return sum(c + sin(sin(sin(c))));  // the case: add(C, f3(f2(f1(C))))
      },
      type);
  const Plan keep_all = make_plan(captured.graph, {.strategy = Strategy::none});
  const Plan tight = make_plan(captured.graph, {.budget = keep_all.floor_bytes, .strategy = Strategy::greedy});
  ASSERT_TRUE(tight.feasible);
  const Plan cheapest = make_plan(captured.graph, {.budget = keep_all.floor_bytes});
  ASSERT_TRUE(cheapest.feasible);
  EXPECT_LE(cheapest.cost_us, tight.cost_us) << "it keeps C only where that leaves the peak as it is";
  EXPECT_LT(tight.peak_bytes, keep_all.peak_bytes);
  ASSERT_GT(tight.recomputed_nodes, 0);
  // At the floor, greedy recomputes in backward from x and w alone. After backward has begun, no clone reads a value that
  // forward made, C included.
  const Graph& g = tight.graph;
  NodeId backward_begins = 0;
  while (g.nodes[backward_begins].origin.phase == Phase::forward && !g.nodes[backward_begins].origin.clone) ++backward_begins;
  int clones = 0;
  for (NodeId n = backward_begins; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    if (!node.origin.clone) continue;
    ++clones;
    for (ValueId v : g.inputs(node)) {
      const NodeId maker = g.values[v].node;
      if (maker == kNone || g.literal(g.nodes[maker])) continue;
      EXPECT_TRUE(g.nodes[maker].origin.clone || maker >= backward_begins) << g.node_text(n) << " keeps " << g.value_name(v);
    }
  }
  EXPECT_GE(clones, 3) << "C, f1(C) and f2(f1(C))";
}

TEST(Weakness, W9_PlansCountTheBytesOfTheirDtype) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const Type type{dtype, {1024}};
    const Captured captured = captured_training([](const Tensor& x, const Tensor& w) { return sum(sin(sin(x * w))); }, type);
    const Plan plan = make_plan(captured.graph, {.strategy = Strategy::none});
    const std::int64_t size = static_cast<std::int64_t>(dtype_size(dtype)), vector = 1024 * size;
    // External bytes are those of x, w, the loss and dw. The last two are outputs.
    EXPECT_EQ(plan.external_bytes, 2 * vector + vector + size) << dtype_name(dtype);
    for (ValueId v = 0; v < plan.graph.value_count(); ++v) {
      const Type& t = plan.graph.values[v].type;
      EXPECT_TRUE(t.bytes() == t.numel() * size || !is_floating(t.dtype)) << to_string(t);
    }
    Executor executor(plan);
    executor.set_input(0, drawn(type, {-1, 1}, 1));
    executor.set_state("w", drawn(type, {-1, 1}, 2));
    executor.run();
    EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
    EXPECT_EQ(plan.peak_bytes, plan.external_bytes + plan.arena_bytes);
    EXPECT_EQ(plan.arena_bytes % size, 0);
  }
}

// Kernels compute f32 and f64 in their own type, so twice the bytes per element gives exactly twice the peak. Kernels
// compute halves in f32 and keep these f32 numbers in the workspace. This is the only reason why a half takes more than a
// quarter of the bytes of f64.
TEST(Weakness, W9_TwiceTheElementSizeIsTwiceThePeak) {
  const auto peak_of = [](DType dtype) {
    const Tensor x = drawn({dtype, {1024}}, {-1, 1}, 1), y = drawn({dtype, {1024}}, {-1, 1}, 2);
    Capture capture("step");
    const Tensor a = capture.input("x", x), b = capture.input("y", y), c = a + b, d = c * a;
    capture.output("z", maximum(d * b, c) + d);
    const Plan plan = make_plan(capture.finish().graph, {.strategy = Strategy::none});
    EXPECT_EQ(plan.external_bytes, 3 * 1024 * static_cast<std::int64_t>(dtype_size(dtype)));
    EXPECT_GT(plan.arena_bytes, 0);
    std::int64_t workspace = 0;
    for (const Scratch& s : plan.workspace) workspace = std::max(workspace, s.bytes);
    return std::pair{plan.peak_bytes, workspace};
  };
  const auto [half, half_workspace] = peak_of(DType::f16);
  const auto [single, single_workspace] = peak_of(DType::f32);
  EXPECT_EQ(peak_of(DType::bf16), peak_of(DType::f16));
  EXPECT_EQ(peak_of(DType::f64), std::pair(2 * single, 2 * single_workspace));
  EXPECT_EQ(single_workspace, 0);
  EXPECT_LE(half, single / 2 + half_workspace);
  EXPECT_GE(half, single / 2);
}

// Ops that only move bytes need no workspace in any type. %a and %b are alive at the same time; %c is an output.
TEST(Weakness, W9_PlansOfMovedBytesAreExact) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const std::string t = std::string(dtype_name(dtype)) + "[32,64]";
    const Graph g = parse("graph moves(%x: " + t + ") {\n  %a: " + t + " = flip(%x) {axes=[0]}\n  %b: " + t +
                          " = flip(%a) {axes=[1]}\n  %c: " + t + " = flip(%b) {axes=[0]}\n  return %c\n}");
    const Plan plan = make_plan(g);
    const std::int64_t each = 32 * 64 * static_cast<std::int64_t>(dtype_size(dtype));
    EXPECT_EQ(plan.external_bytes, 2 * each) << t;
    EXPECT_EQ(plan.arena_bytes, 2 * each) << t;
    EXPECT_EQ(plan.peak_bytes, 4 * each) << t;
    Executor executor(plan);
    executor.set_input("x", drawn({dtype, {32, 64}}, {-1, 1}, 1));
    executor.run();
    EXPECT_EQ(executor.observed_peak_bytes(), 4 * each) << t;
  }
}

}  // namespace
}  // namespace tapedeck::agree
