// Tests the capture scope: the lists of tensors that it finds, the graph that it makes, and the steps that it refuses. The
// oracle for the graph is run_eagerly(). After a failure the eager results stand and the next capture works.
#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using testing::message_of;

Tensor copied(const Tensor& t) {
  const NoGrad no_grad;
  return from_bytes(t.type(), contiguous(t).data());
}

std::vector<Tensor> copied(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(copied(t));
  return all;
}

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 16}, fc2{*this, "fc2", 16, 4};
  Dropout drop{*this, "drop", 0.5};
  Tensor operator()(const Tensor& x) {
    return fc2(checkpoint([&] { return drop(relu(fc1(x))); }));
  }
};

Tensor sample_x() { return normal({8, 6}); }
Tensor sample_y() { return from_vector(std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3}, {8}); }

// Checks that no capture is open on this thread and that its tape is empty.
void expect_clean() {
  EXPECT_EQ(tape_stats().nodes, 0);
  Capture capture("again");
  const Tensor x = capture.input("x", tensor({1, 2}));
  capture.output("y", x + x);
  EXPECT_EQ(capture.finish().graph.node_count(), 1);
}

// ---- the tensors that a capture finds ----

TEST(Capture, SortsWhatTheStepReads) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter).requires_grad(true);
  Tensor rate = scalar(0.5);
  rate.name("rate").role(Role::input);
  Tensor mean = tensor({0, 0});
  mean.name("mean").role(Role::statistic);
  const Tensor table = tensor({5, 6});
  Capture capture("step");
  const Tensor x = capture.input("x", tensor({3, 4}));
  const Tensor y = x * w * rate + table;
  apply_in_place(ops::add, std::vector<Tensor>{mean, y.detach()}, nullptr, {});
  capture.output("y", y);
  const Captured captured = capture.finish();
  const Graph& g = captured.graph;
  ASSERT_EQ(g.n_inputs, 2);
  EXPECT_EQ(g.value_name(0), "x");
  EXPECT_EQ(g.value_name(1), "rate");
  ASSERT_EQ(g.n_state, 2);
  EXPECT_EQ(g.value_name(2), "w");
  EXPECT_EQ(g.values[2].role, Role::parameter);
  EXPECT_EQ(g.value_name(3), "mean");
  EXPECT_EQ(g.values[3].role, Role::statistic);
  EXPECT_EQ(captured.report.mutated, std::vector<std::string>{"mean"});
  ASSERT_EQ(captured.report.constants.size(), 1u);
  EXPECT_MENTIONS(captured.report.constants[0].detail, "capture_test.cpp:");
  EXPECT_EQ(g.updates.size(), 1u);
  EXPECT_EQ(captured.state[0].impl(), w.impl());
  const std::string text = captured.report.to_string();
  for (const char* part : {"inputs:", "x: f32[2]", "state:", "updated: mean", "constants baked in:", "outputs:"})
    EXPECT_MENTIONS(text, part);
}

// A whole training step: the graph passes the verifier, is parsed back from its text, and computes the results of the step.
TEST(Capture, GraphComputesWhatTheStepComputed) {
  manual_seed(5);
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  const Tensor x = sample_x(), y = sample_y();
  next_step();
  Capture capture("train_step");
  const Tensor xs = capture.input("x", x), ys = capture.input("y", y);
  const Tensor loss = cross_entropy(net(xs), ys);
  backward(loss);
  optimizer.step();
  optimizer.zero_grad();
  capture.output("loss", loss);
  const Captured captured = capture.finish();
  verify(captured.graph);
  const std::string text = print(captured.graph);
  EXPECT_EQ(print(parse(text, "text",
                        [&](const std::string& name, Literal* literal) {
                          for (const Literal& l : captured.graph.constants)
                            if (l.tensor == Name(name)) return *literal = l, true;
                          return false;
                        })),
            text);
  EXPECT_EQ(captured.report.mutated.size(), 4u * 3 + 2) << "parameters, two moments each, the counter, the random state";
  EXPECT_FALSE(loss.requires_grad()) << "the history is on the capture's tape";
  EXPECT_EQ(tape_stats().nodes, 0);
  // Runs the next step eagerly and through the graph.
  const std::vector<Tensor> state = copied(captured.state);
  std::vector<Tensor> inputs{x, y};
  for (std::size_t i = 2; i < captured.inputs.size(); ++i) inputs.push_back(captured.inputs[i]);
  const EagerResult replayed = run_eagerly(captured.graph, inputs, state);
  const Tensor next = cross_entropy(net(x), y);
  backward(next);
  optimizer.step();
  EXPECT_TRUE(bit_equal(replayed.outputs[0], next));
  for (std::size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(bit_equal(replayed.state[i], captured.state[i])) << captured.state[i].name().view();
}

TEST(Capture, AbstractStepsGiveTheSameGraph) {
  for (const char* name : {"mlp", "cnn", "lenet"}) {
    const Model& model = *find_model(name);
    const Captured real = record_model(model, {.batch = 2}), abstract = record_model(model, {.batch = 2, .abstract = true});
    EXPECT_EQ(print(abstract.graph), print(real.graph)) << model.name;
    for (const Tensor& t : abstract.state) EXPECT_TRUE(t.abstract() || t.numel() <= 2) << t.name().view();
  }
}

TEST(Capture, NodesCarryTheirOrigin) {
  manual_seed(5);
  Net net;
  Sgd optimizer(net.parameters());
  const Tensor x = sample_x();
  Capture capture("step");
  const Tensor loss = sum(net(capture.input("x", x)));
  backward(loss);
  optimizer.step();
  capture.output("loss", loss);
  const Graph g = capture.finish().graph;
  int regions = 0, twins = 0, updates = 0;
  for (const Node& n : g.nodes) {
    EXPECT_FALSE(n.origin.site.empty()) << n.op->name;
    regions += n.origin.phase == Phase::forward && n.origin.region != kNone;
    twins += n.origin.phase == Phase::backward && !n.origin.twin.empty();
    updates += n.origin.phase == Phase::update;
  }
  EXPECT_EQ(regions, 4) << "matmul, add, relu, dropout";
  EXPECT_GT(twins, 4);
  EXPECT_EQ(updates, 5) << "four parameters and the random state";
}

TEST(Capture, NoGradBecomesANode) {
  Tensor w = tensor({1, 2});
  w.requires_grad(true);
  Capture capture("step");
  const Tensor x = capture.input("x", tensor({3, 4}));
  Tensor target;
  {
    const NoGrad no_grad;
    target = x * w;
  }
  backward(sum(x * w * target));
  capture.output("g", w.grad());
  const Captured captured = capture.finish();
  EXPECT_MENTIONS(print(captured.graph), "stop_gradient");
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{9, 32}));
}

TEST(Capture, OutputMayBeAnInputAStateOrNamedTwice) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter);
  Capture capture("step");
  const Tensor x = capture.input("x", tensor({3, 4}));
  apply_in_place(ops::add, std::vector<Tensor>{w, x}, nullptr, {});
  const Tensor y = x * 2;
  capture.output("x", x);
  capture.output("w", w);
  capture.output("y", y);
  capture.output("y2", y);
  const Captured captured = capture.finish();
  const EagerResult r = run_eagerly(captured.graph, {tensor({1, 1})}, {tensor({10, 20})});
  EXPECT_EQ(r.outputs[0].to_vector<float>(), (Floats{1, 1}));
  EXPECT_EQ(r.outputs[1].to_vector<float>(), (Floats{11, 21})) << "the value after the step";
  EXPECT_EQ(r.outputs[2].to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(r.outputs[3].to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(r.state[0].to_vector<float>(), (Floats{11, 21}));
}

TEST(Capture, OneTensorAsTwoInputsStaysTwoInputs) {
  const Tensor t = tensor({3, 4});
  Capture capture("step");
  const Tensor a = capture.input("a", t), b = capture.input("b", t);
  capture.output("d", a - b);
  const Captured captured = capture.finish();
  EXPECT_EQ(run_eagerly(captured.graph, {tensor({5, 5}), tensor({1, 2})}, {}).outputs[0].to_vector<float>(), (Floats{4, 3}));
}

// Two weights with equal values. An eager step has used `eager`. A step that uses `w` afterwards draws the same random numbers.
struct EagerTwin {
  const Tensor x = tensor({3, 4});
  Tensor eager = tensor({1, 2}), w = tensor({1, 2});

  template <class Step>
  explicit EagerTwin(const Step& step) {
    eager.requires_grad(true);
    w.requires_grad(true);
    manual_seed(1);
    backward(step(x, eager));
    manual_seed(1);
  }
};

// A checkpoint region also recomputes values that need no gradient.
TEST(Capture, CheckpointWithPartsThatNeedNoGradient) {
  auto step = [](const Tensor& x, const Tensor& w) {
    return sum(checkpoint([&] { return where(less(uniform({2}), 0.5), relu(x * 2) * w, exp(w)); }));
  };
  const EagerTwin twin(step);
  const Tensor &x = twin.x, &eager = twin.eager, &w = twin.w;
  Capture capture("step");
  backward(step(capture.input("x", x), w));
  capture.output("g", w.grad());
  const Captured captured = capture.finish();
  EXPECT_TRUE(bit_equal(w.grad(), eager.grad()));
  EXPECT_TRUE(bit_equal(run_eagerly(captured.graph, {x}, captured.state).outputs[0], eager.grad()));
}

// Ops inside keep_here() are in no region, so the strategy `regions` computes only the ops around them again.
TEST(Capture, KeepHereStaysOutOfTheRegion) {
  auto step = [](const Tensor& x, const Tensor& w) {
    return sum(checkpoint([&] {
      const Tensor kept = keep_here([&] { return sin(dropout(tanh(x * w), 0.25)); });
      return exp(sigmoid(kept)) * w;
    }));
  };
  const EagerTwin twin(step);
  const Tensor &x = twin.x, &eager = twin.eager, &w = twin.w;
  Capture capture("step");
  const Tensor loss = step(capture.input("x", x), w);
  backward(loss);
  capture.output("loss", loss);
  capture.output("g", w.grad());
  const Captured captured = capture.finish();
  PlanOptions options;
  options.strategy = Strategy::regions;
  const Plan plan = make_plan(captured.graph, options);
  std::vector<std::string> again;
  for (const Node& node : plan.graph.nodes)
    if (node.origin.clone) again.push_back(node.op->name);
  EXPECT_EQ(again, (std::vector<std::string>{"sigmoid", "exp"})) << print(plan.graph);
  EXPECT_TRUE(bit_equal(w.grad(), eager.grad()));
  EXPECT_TRUE(bit_equal(run_eagerly(plan.graph, {x}, captured.state).outputs[1], eager.grad()));
}

// ---- marks for single values ----

// The mark of the first node with this op.
NodeWish wish_of(const Graph& graph, const std::string& op) {
  for (const Node& node : graph.nodes)
    if (node.op->name == op) return node.origin.wish;
  return NodeWish::none;
}

Tensor marked_step(const Tensor& x, const Tensor& w, bool marks) {
  const auto kept = [&](const Tensor& t) { return marks ? keep(t) : t; };
  const auto again = [&](const Tensor& t) { return marks ? recompute(t) : t; };
  const Tensor h = again(exp(kept(x) * w));
  const Tensor inside = checkpoint([&] { return sin(kept(tanh(h))) * h; });
  return sum(inside * h);
}

TEST(CaptureMarks, ArePartOfTheGraphAndOfItsPlans) {
  const Tensor x = tensor({3, 4});
  Tensor eager = tensor({1, 2}), w = tensor({1, 2});
  eager.requires_grad(true);
  w.requires_grad(true);
  backward(marked_step(x, eager, false));
  Capture capture("step");
  backward(marked_step(capture.input("x", x), w, true));
  capture.output("g", w.grad());
  const Captured captured = capture.finish();
  EXPECT_EQ(wish_of(captured.graph, "exp"), NodeWish::recompute);
  EXPECT_EQ(wish_of(captured.graph, "tanh"), NodeWish::keep) << "inside of a region";
  EXPECT_EQ(wish_of(captured.graph, "sin"), NodeWish::none);
  EXPECT_EQ(wish_of(captured.graph, "mul"), NodeWish::none) << "an input has no node to mark";

  PlanOptions options;
  options.strategy = Strategy::none;
  const Plan plan = make_plan(captured.graph, options);
  EXPECT_EQ(plan.recomputed_nodes, 1) << print(plan.graph);
  EXPECT_TRUE(bit_equal(w.grad(), eager.grad()));
  EXPECT_TRUE(bit_equal(run_eagerly(plan.graph, {x}, captured.state).outputs[0], eager.grad()));
}

TEST(CaptureMarks, GoThroughAFile) {
  Capture capture("step");
  capture.output("y", recompute(exp(capture.input("x", tensor({1, 2})))));
  const TemporaryFolder folder;
  save_tape(folder.file("marked.tape"), capture.finish());
  EXPECT_EQ(wish_of(load_tape(folder.file("marked.tape")).captured, "exp"), NodeWish::recompute);
}

TEST(CaptureMarks, OfATensorThatNoOpMadeDoNothing) {
  const Tensor x = tensor({1, 2});
  EXPECT_TRUE(bit_equal(keep(x), x));
  EXPECT_TRUE(bit_equal(recompute(x), x));
  EXPECT_FALSE(keep(Tensor()).defined());
}

// ---- the steps that a capture refuses ----

template <class F>
std::string refused(F&& body) {
  std::string text;
  {
    Capture capture("step");
    text = message_of<CaptureError>([&] {
      body(capture);
      capture.finish();
    });
  }
  expect_clean();
  return text;
}

TEST(CaptureRefuses, HostReads) {
  EXPECT_MENTIONS(refused([](Capture& c) { (c.input("x", tensor({1})) * 2).item(); }),
                  "[item] reads a tensor on the host inside a capture");
  EXPECT_MENTIONS(refused([](Capture& c) { (c.input("x", tensor({1})) * 2).to_vector<float>(); }),
                  "[to_vector] reads a tensor on the host inside a capture");
  EXPECT_MENTIONS(refused([](Capture& c) { (c.input("x", tensor({1})) * 2).data(); }),
                  "[data] reads a tensor on the host inside a capture");
  // Reading an input or a state on the host would also bake its value into the graph.
  EXPECT_MENTIONS(refused([](Capture& c) { c.input("x", tensor({1})).item(); }),
                  "[item] reads a tensor on the host inside a capture");
}

TEST(CaptureRefuses, HostWrites) {
  Tensor t = tensor({1});
  EXPECT_MENTIONS(refused([&](Capture&) { t.mutable_data(); }),
                  "[mutable_data] writes a tensor from the host inside a capture");
  EXPECT_MENTIONS(refused([](Capture&) { manual_seed(1); }), "[manual_seed] re-seeds inside a capture");
  Sgd optimizer({ones({1}).requires_grad(true)});
  EXPECT_MENTIONS(refused([&](Capture&) { optimizer.set_lr(2); }),
                  "[mutable_data] writes a tensor from the host inside a capture");
}

TEST(CaptureRefuses, NestedCaptures) {
  EXPECT_MENTIONS(refused([](Capture&) { Capture inner("inner"); }), "a capture is already open on this thread");
  EXPECT_MENTIONS(message_of<CaptureError>([] {
                    checkpoint([] {
                      Capture inside("inside");
                      return tensor({1});
                    });
                  }),
                  "cannot open inside a checkpoint region");
  expect_clean();
}

TEST(CaptureRefuses, DuplicateNamesAndForeignInputs) {
  EXPECT_MENTIONS(refused([](Capture& c) {
                    c.input("x", tensor({1}));
                    c.input("x", tensor({2}));
                  }),
                  "input 'x' is declared twice");
  EXPECT_MENTIONS(refused([](Capture& c) {
                    c.output("y", c.input("x", tensor({1})));
                    c.output("y", tensor({2}));
                  }),
                  "output 'y' is declared twice");
  EXPECT_MENTIONS(refused([](Capture& c) { c.input("y", c.input("x", tensor({1})) * 2); }),
                  "input 'y' was computed inside the capture");
  EXPECT_MENTIONS(refused([](Capture& c) { c.input("x", Tensor()); }), "input 'x' is undefined");
  EXPECT_MENTIONS(refused([](Capture& c) { c.output("y", Tensor()); }), "output 'y' is undefined");
}

TEST(CaptureRefuses, ModifiedInputs) {
  EXPECT_MENTIONS(
      refused([](Capture& c) { apply_in_place(ops::neg, std::vector<Tensor>{c.input("x", tensor({1}))}, nullptr, {}); }),
      "the input 'x' f32[1] is modified in place inside the step by 'neg' at ");
}

TEST(CaptureRefuses, HistoryFromBefore) {
  Tensor w = tensor({1, 2});
  w.requires_grad(true);
  const Tensor h = w * 2;
  std::string text;
  {
    Capture capture("step");
    text = message_of<CaptureError>([&] { mul(h, 3); });
  }
  EXPECT_MENTIONS(text, "whose gradient history began before the capture; detach() it or make it inside");
  Capture capture("step");
  const Tensor first = [&] {
    const NoGrad no_grad;
    return h * 3;
  }();
  EXPECT_THROW(h * 3, CaptureError) << "read first without a gradient, then with one";
}

// backward() adds to a gradient from before the capture, as it does in eager code. This gradient is an input of the graph.
TEST(Capture, GradientsBegunBeforeAreInputs) {
  Tensor w = tensor({1, 2});
  w.name("w").requires_grad(true);
  backward(sum(w));
  Capture capture("step");
  backward(sum(w * 2));
  capture.output_gradients();
  const Captured captured = capture.finish();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{3, 3}));
  ASSERT_EQ(captured.graph.n_inputs, 1);
  EXPECT_EQ(captured.graph.value_name(0), "grad_in.w");
  ASSERT_EQ(captured.graph.output_names.size(), 1u);
  EXPECT_EQ(captured.graph.output_names[0], Name("grad.w"));
  EXPECT_EQ(run_eagerly(captured.graph, {tensor({5, 6})}, captured.state).outputs[0].to_vector<float>(), (Floats{7, 8}));
}

// After a write to the base, a view is derived anew. The graph must compute the step's results, whether the view was made,
// or declared an output, before the write or after it.
TEST(Capture, ViewsFollowWritesToTheirBase) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter);
  Capture capture("step");
  const Tensor view = slice(w, 0, 0, 1);
  capture.output("view", view);
  apply_in_place(ops::neg, std::vector<Tensor>{w}, nullptr, {__FILE__, __LINE__});
  const Tensor twice = add(view, view);
  capture.output("twice", twice);
  const Captured c = capture.finish();
  const EagerResult replayed = run_eagerly(c.graph, {}, {tensor({1, 2})});
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{-1}));
  EXPECT_TRUE(bit_equal(replayed.outputs[0], view)) << print(c.graph);
  EXPECT_TRUE(bit_equal(replayed.outputs[1], twice)) << print(c.graph);
}

TEST(CaptureRefuses, SharedBytes) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter);
  const Tensor outside = slice(w, 0, 0, 1);
  EXPECT_MENTIONS(refused([&](Capture&) {
                    add(outside, outside);
                    apply_in_place(ops::neg, std::vector<Tensor>{w}, nullptr, {});
                  }),
                  "shares its bytes with 'w', which the step modifies in place");
}

TEST(CaptureRefuses, LeavesMadeInside) {
  EXPECT_MENTIONS(refused([](Capture& c) {
                    Tensor y = c.input("x", tensor({1})) * 2;
                    y.requires_grad(true);
                  }),
                  "was computed inside the capture");
}

// ---- failures in the middle of a step ----

struct Stop {};

// Runs a step and throws before part `k`. Returns false if the step has no part `k`.
bool run_until(int k, Net& net, Optimizer& optimizer, const Tensor& x, const Tensor& y) {
  auto part = [&] {
    if (k-- == 0) throw Stop{};
  };
  try {
    Capture capture("step");
    part();
    const Tensor xs = capture.input("x", x);
    part();
    const Tensor h = relu(net.fc1(xs));
    part();
    const Tensor r = checkpoint([&] {
      const Tensor d = net.drop(h);
      part();
      return tanh(d);
    });
    part();
    const Tensor loss = cross_entropy(net.fc2(r), y);
    part();
    backward(loss);
    part();
    optimizer.step();
    part();
    optimizer.zero_grad();
    part();
    capture.output("loss", loss);
    part();
    capture.finish();
    return false;
  } catch (const Stop&) {
    optimizer.zero_grad();
    return true;
  }
}

TEST(Capture, FailingAnywhereLeaksNothing) {
  manual_seed(5);
  Net net;
  AdamW optimizer(net.parameters());
  const Tensor x = sample_x(), y = sample_y();
  run_until(100, net, optimizer, x, y);
  const MemoryStats before = Allocator::host().stats();
  int k = 0;
  while (run_until(k, net, optimizer, x, y)) {
    EXPECT_EQ(Allocator::host().stats().bytes_in_use, before.bytes_in_use) << "part " << k;
    EXPECT_EQ(Allocator::host().stats().blocks_in_use, before.blocks_in_use) << "part " << k;
    expect_clean();
    ++k;
  }
  EXPECT_EQ(k, 10);
}

TEST(Capture, EagerResultsStandAfterAFailure) {
  Tensor w = tensor({1, 2});
  w.name("w").role(Role::parameter);
  Tensor y;
  {
    Capture capture("step");
    y = capture.input("x", tensor({3, 4})) * w;
    apply_in_place(ops::add, std::vector<Tensor>{w, y}, nullptr, {});
    EXPECT_THROW(y + tensor({1, 2, 3}), TypeError);
  }
  EXPECT_EQ(y.to_vector<float>(), (Floats{3, 8}));
  EXPECT_EQ(w.to_vector<float>(), (Floats{4, 10}));
}

TEST(Capture, IsClosedByFinish) {
  Capture capture("step");
  capture.output("y", capture.input("x", tensor({1})));
  capture.finish();
  EXPECT_THROW(capture.finish(), CaptureError);
  EXPECT_THROW(capture.input("x", tensor({1})), CaptureError);
  EXPECT_THROW(capture.output("z", tensor({1})), CaptureError);
}

}  // namespace
}  // namespace tapedeck
