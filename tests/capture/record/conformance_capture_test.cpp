// Cases of SEEDS.md about captures, which other systems test too. Each test bears the number of its case. The oracle is
// eager code or arithmetic by hand.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/host_scalar.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/host.h>

#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;
using testing::floats_of;
using testing::message_of;

Tensor leaf(const Tensor& t, const char* name) {
  Tensor w = t;
  w.name(name).role(Role::parameter).requires_grad(true);
  return w;
}

// ---- host functions inside a capture ----

TEST(ConformanceCapture, T47_DebugTap) {
  auto seen = std::make_shared<Floats>();
  auto body = [seen](const Tensors& in) -> Tensors {
    const Tensor a = in[0] + 0.75;
    on_host(
        a, [seen](const Tensor& t) { seen->push_back(static_cast<float>(t.item())); }, "tap");
    return {a * 1.75 + 2.5};
  };
  EXPECT_EQ(body({tensor({0.5f})})[0].item(), 4.6875) << "eager";
  CapturedStep step = capture(body);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(step({tensor({0.5f})})[0].item(), 4.6875);
  EXPECT_EQ(*seen, Floats(5, 1.25f)) << "once in every call, also in replays";
  EXPECT_EQ(step.replays(), 2);
  EXPECT_MENTIONS(step.explain(), "host calls:\n  tap: f32[1]  at conformance_capture_test.cpp:");
}

// Host calls keep their order on any number of threads and after every pass, whatever other nodes run beside them.
TEST(ConformanceCapture, T47_TapsKeepTheirOrder) {
  for (int threads : {1, 2}) {
    auto seen = std::make_shared<std::vector<int>>();
    auto body = [seen](const Tensors& in) -> Tensors {
      Tensors y;
      for (int i = 0; i < 12; ++i) {
        y.push_back(exp(in[0] * i));
        on_host(y.back(), [seen, i](const Tensor&) { seen->push_back(i); });
      }
      return {concat(y, 0)};
    };
    CapturedStepOptions options;
    options.executor.threads = threads;
    options.plan.segment_us = 0;
    CapturedStep step = capture(body, options);
    for (int i = 0; i < 5; ++i) step({ones({64})});
    ASSERT_EQ(seen->size(), 60u);
    for (int i = 0; i < 60; ++i) EXPECT_EQ((*seen)[i], i % 12) << threads;
  }
}

TEST(ConformanceCapture, T47_TapsInRegionsAndBackwardAreCalledOnce) {
  Tensor w = leaf(tensor({1, 2}), "w");
  auto count = std::make_shared<int>(0);
  CapturedStep step = capture([&w, count](const Tensors& in) -> Tensors {
    w.set_grad(Tensor());
    backward(sum(checkpoint([&] {
      const Tensor h = tanh(in[0] * w);
      on_host(h, [count](const Tensor&) { ++*count; });
      return h * h;
    })));
    return {};
  });
  for (int i = 1; i <= 4; ++i) {
    step({tensor({1, 1})});
    EXPECT_EQ(*count, i);
  }
}

TEST(ConformanceCapture, T47_AFailingTap) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  auto fail = std::make_shared<bool>(true);
  CapturedStep step = capture([fail](const Tensors& in) -> Tensors {
    on_host(
        in[0],
        [fail](const Tensor&) {
          if (*fail) throw Mine("no good");
        },
        "tap");
    return {in[0] * 2};
  });
  EXPECT_THROW(step({tensor({1})}), Mine) << "the same exception, while recording";
  *fail = false;
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  *fail = true;
  const std::string text = message_of<ExecutionError>([&] { step({tensor({1})}); });
  EXPECT_MENTIONS(text, "[on_host] no good");
  EXPECT_MENTIONS(text, "conformance_capture_test.cpp:");
  *fail = false;
  EXPECT_EQ(floats_of(step({tensor({1})})[0]), Floats{2});
}

TEST(ConformanceCapture, T47_TapsCannotBeSaved) {
  Capture scope("main");
  const Tensor x = scope.input("x", tensor({1}));
  on_host(
      x, [](const Tensor&) {}, "tap");
  scope.output("y", x + 1);
  TapeFile file;
  file.captured = scope.finish().graph;
  const TemporaryFolder folder;
  const std::string text = message_of<UsageError>([&] { save_tape(folder.file("tap.tape"), file); });
  EXPECT_MENTIONS(text, "on_host(%x) {name=\"tap\"");
  EXPECT_MENTIONS(text, "calls back into this process and cannot be saved");
}

// ---- captured graphs and their memory ----

TEST(ConformanceCapture, T57_BoundTensorsAreNotAllocated) {
  Tensor a = tensor({11003}), k = tensor({0.12f});
  a.name("a").role(Role::parameter);
  k.name("k").role(Role::parameter);
  Capture scope("main");
  scope.output("y", (a * k + 1.1) * -0.5);
  const Captured captured = scope.finish();
  PlanOptions options;
  options.alignment = 4;
  EXPECT_LE(make_plan(captured.graph, options).arena_bytes, 2 * 4)
      << "the second of a*k and the sum takes over the bytes of the first";
  options.sharing = Sharing::none;
  const Plan plan = make_plan(captured.graph, options);
  EXPECT_EQ(plan.arena_bytes, 2 * 4) << "a*k and the sum are unbound, and alive together; the result is handed out";
  const std::int64_t before = Allocator::host().stats().bytes_in_use;
  const auto pool = std::make_shared<ReplayPool>();
  Executor executor(plan, {.pool = pool});
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, before) << "a replay counts its own";
  executor.bind_state("a", a);
  executor.bind_state("k", k);
  executor.run();
  EXPECT_NEAR(executor.outputs()[0].item(), -660.73, 1e-2);
  EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
  int bound = 0;
  pool->memory()->each_member([&](const replay::Member& m) {
    for (const auto& s : m.state) bound += s->base == (s->name.view() == "a" ? a : k).data();
  });
  EXPECT_EQ(bound, 2) << "bound tensors are used where they are";
}

TEST(ConformanceCapture, T58_TwoStreams) {
  CapturedStepOptions options;
  options.executor.threads = 2;
  options.plan.segment_us = 0;
  CapturedStep step = capture(
      [](const Tensors& in) -> Tensors {
        const Tensor q = (in[0] * 0.21) / (in[1] + 3.2);
        return {log(q) + exp(q)};
      },
      options);
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(step({tensor({2}), tensor({2.2f})})[0].item(), std::log(0.0777778) + std::exp(0.0777778), 1e-5);
}

TEST(ConformanceCapture, T79_ExceptionInside) {
  struct Mine {
    int* token;
  };
  int token = 0;
  bool fail = true;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    const Tensor y = in[0] + 1;
    if (fail) throw Mine{&token};
    return {y};
  });
  try {
    step({tensor({1})});
    FAIL();
  } catch (const Mine& e) {
    EXPECT_EQ(e.token, &token);
  }
  fail = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(floats_of(step({tensor({1})})[0]), Floats{2});
}

TEST(ConformanceCapture, T80_IncompatibleShapes) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors { return {in[0] + in[1]}; });
  const std::string text = message_of<TypeError>([&] { step({ones({3}), ones({4})}); });
  EXPECT_MENTIONS(text, "[add]");
  EXPECT_MENTIONS(text, "conformance_capture_test.cpp:");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(floats_of(step({ones({2}), ones({2})})[0]), (Floats{2, 2}));
  EXPECT_THROW(step({ones({3}), ones({4})}), TypeError);
  EXPECT_EQ(floats_of(step({ones({2}), ones({2})})[0]), (Floats{2, 2}));
}

// ---- captures of a part of a step ----

struct NormNet : Module {
  Linear fc1{*this, "fc1", 4, 8};
  LayerNorm norm{*this, "norm", 8};
  Linear fc2{*this, "fc2", 8, 3};
};

Tensor sample(int i) { return reshape(arange(12, DType::f32), {3, 4}) * (0.05 * (i + 1)) - 0.2; }
Tensor labels(int i) { return from_vector(std::vector<std::int32_t>{i % 3, (i + 1) % 3, (i + 2) % 3}, {3}); }

using Forward = std::function<Tensor(NormNet&, const Tensor&)>;

// The losses and parameters of a few steps. Loss, backward and optimizer are eager; `make` gives the forward pass.
Tensors train_forward(const std::function<Forward(NormNet&)>& make) {
  manual_seed(6);
  NormNet net;
  const Forward forward = make(net);
  Sgd optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  Tensors all;
  for (int i = 0; i < 7; ++i) {
    const Tensor loss = cross_entropy(forward(net, sample(i)), labels(i));
    backward(loss);
    for (const Tensor& p : net.parameters()) all.push_back(copy(p.grad()));
    optimizer.step();
    optimizer.zero_grad();
    all.push_back(loss.detach());
  }
  for (const Tensor& p : net.parameters()) all.push_back(copy(p.detach()));
  return all;
}

Tensor whole(NormNet& net, const Tensor& x) { return net.fc2(gelu(net.norm(net.fc1(x)))); }

void expect_same(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bit_equal(a[i], b[i])) << i;
}

TEST(ConformanceCapture, T82_CapturedForwardEagerBackward) {
  const Tensors eager = train_forward([](NormNet&) -> Forward { return whole; });
  auto step = std::make_shared<std::unique_ptr<CapturedStep>>();
  const Tensors mixed = train_forward([step](NormNet& net) -> Forward {
    *step = std::make_unique<CapturedStep>([&net](const Tensors& in) -> Tensors { return {whole(net, in[0])}; });
    return [step](NormNet&, const Tensor& x) { return (**step)({x})[0]; };
  });
  expect_same(eager, mixed);
  EXPECT_EQ((*step)->recordings(), 2);
  EXPECT_EQ((*step)->replays(), 5);
  step->reset();
}

// Gradients pass through two captured pieces with eager code between them.
TEST(ConformanceCapture, T82_CapturedPiecesAroundEagerCode) {
  const Tensors eager = train_forward([](NormNet&) -> Forward { return whole; });
  const Tensors mixed = train_forward([](NormNet& net) -> Forward {
    auto first = std::make_shared<CapturedStep>([&net](const Tensors& in) -> Tensors { return {net.fc1(in[0])}; });
    auto last = std::make_shared<CapturedStep>([&net](const Tensors& in) -> Tensors { return {net.fc2(in[0])}; });
    return [first, last](NormNet& n, const Tensor& x) { return (*last)({gelu(n.norm((*first)({x})[0]))})[0]; };
  });
  expect_same(eager, mixed);
}

// The capture of the whole training step excludes the middle stretch of the forward pass.
TEST(ConformanceCapture, T82_ExcludedStretch) {
  auto run = [](bool captured) {
    manual_seed(6);
    NormNet net;
    Sgd optimizer(net.parameters(), {.lr = 0.1});
    auto calls = std::make_shared<int>(0);
    auto body = [&net, &optimizer, calls](const Tensors& in) -> Tensors {
      const Tensor h = net.fc1(in[0]);
      const Tensor g = exclude_from_capture(
          {h},
          [calls](const Tensors& xs) -> Tensors {
            ++*calls;
            return {sum(xs[0]).item() > 0.5 ? tanh(xs[0]) : xs[0] * xs[0]};  // branches on a value
          },
          "branch")[0];
      const Tensor loss = cross_entropy(net.fc2(g), in[1]);
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return {loss};
    };
    CapturedStep step = capture(body);
    Tensors all;
    for (int i = 0; i < 8; ++i) {
      const Tensors in{i % 2 ? sample(i) : sample(i) * -3, labels(i)};
      all.push_back((captured ? step(in) : body(in))[0].detach());
    }
    for (const Tensor& p : net.parameters()) all.push_back(copy(p.detach()));
    if (captured) {
      EXPECT_EQ(step.replays(), 6);
      EXPECT_EQ(*calls, 16) << "forward and backward of every step";
    }
    return all;
  };
  expect_same(run(false), run(true));
}

TEST(ConformanceCapture, T82_ExcludedStretchThatHidesAGradient) {
  Tensor w = leaf(tensor({2}), "w");
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    return exclude_from_capture({in[0]}, [&](const Tensors& xs) -> Tensors { return {xs[0] * w}; });
  });
  EXPECT_MENTIONS(message_of<CaptureError>([&] { step({tensor({1})}); }),
                  "depends on a tensor that needs a gradient and is no operand; pass it too");
}

TEST(ConformanceCapture, T82_ExcludedStretchOfAnotherType) {
  bool wide = false;
  CapturedStep step = capture([&wide](const Tensors& in) -> Tensors {
    return exclude_from_capture({in[0]}, [&wide](const Tensors& xs) -> Tensors {
      return {wide ? concat({xs[0], xs[0]}, 0) : xs[0]};
    });
  });
  for (int i = 0; i < 3; ++i) step({tensor({1})});
  wide = true;
  EXPECT_MENTIONS(message_of<ExecutionError>([&] { step({tensor({1})}); }),
                  "the function returned f32[2] as result 0, f32[1] when it was recorded");
}

TEST(ConformanceCapture, T82_OutputCopy) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    const Tensor y = in[0] + 1;
    return {y, y};
  });
  for (int i = 0; i < 4; ++i) {
    const Tensors out = step({tensor({1})});
    add_(out[0], 5);
    EXPECT_EQ(floats_of(out[1]), Floats{2});
  }
}

// ---- executors of captured steps ----

TEST(ConformanceCapture, T86_Bind) {
  struct Case {
    const char* name;
    Tensor (*f)(const Arg&, const Arg&);
    double (*dx)(double x, double y);
    double (*dy)(double x, double y);
  };
  const Case cases[] = {
      {"add", [](const Arg& a, const Arg& b) { return add(a, b); }, [](double, double) { return 1.0; },
       [](double, double) { return 1.0; }},
      {"sub", [](const Arg& a, const Arg& b) { return sub(a, b); }, [](double, double) { return 1.0; },
       [](double, double) { return -1.0; }},
      {"mul", [](const Arg& a, const Arg& b) { return mul(a, b); }, [](double, double y) { return y; },
       [](double x, double) { return x; }},
      {"div", [](const Arg& a, const Arg& b) { return div(a, b); }, [](double, double y) { return 1 / y; },
       [](double x, double y) { return -x / (y * y); }},
      {"maximum", [](const Arg& a, const Arg& b) { return maximum(a, b); },
       [](double x, double y) { return x >= y ? 1.0 : 0.0; }, [](double x, double y) { return y > x ? 1.0 : 0.0; }},
      {"minimum", [](const Arg& a, const Arg& b) { return minimum(a, b); },
       [](double x, double y) { return x <= y ? 1.0 : 0.0; }, [](double x, double y) { return y < x ? 1.0 : 0.0; }},
  };
  for (const Case& c : cases)
    for (double segment_us : {0.0, 50.0}) {  // every node is a segment of its own, or many nodes are in one
      Tensor a = leaf(tensor({0.5f, -1.5f, 2, 3}), "a"), b = leaf(tensor({0.25f, 1.5f, -2, 4}), "b");
      CapturedStepOptions options;
      options.plan.segment_us = segment_us;
      options.executor.threads = 2;
      CapturedStep step = capture(
          [&](const Tensors& in) -> Tensors {
            a.set_grad(Tensor());
            b.set_grad(Tensor());
            const Tensor y = c.f(a, b);
            BackwardOptions backward_options;
            backward_options.head = in[0];
            backward(y, backward_options);
            return {y};
          },
          options);
      for (int i = 1; i <= 4; ++i) {
        const Tensor g = tensor({1.f * static_cast<float>(i), 2, -1, 0.5f});
        step({g});
        const Floats x = floats_of(a.detach()), y = floats_of(b.detach()), h = floats_of(g), da = floats_of(a.grad()),
                     db = floats_of(b.grad());
        for (std::size_t k = 0; k < 4; ++k) {
          EXPECT_NEAR(da[k], h[k] * c.dx(x[k], y[k]), 1e-5 * std::abs(da[k])) << c.name << " " << i;
          EXPECT_NEAR(db[k], h[k] * c.dy(x[k], y[k]), 1e-5 * std::abs(db[k])) << c.name << " " << i;
        }
      }
    }
}

TEST(ConformanceCapture, T89_Bulk) {
  CapturedStep four = capture([](const Tensors& in) -> Tensors { return {(in[0] * 2 + 1) + 1}; });
  CapturedStep many = capture([](const Tensors& in) -> Tensors {
    Tensor y = (in[0] * 2 + 1) + 1;
    for (int i = 0; i < 100; ++i) add_(y, 1);
    return {y};
  });
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(four({tensor({1})})[0].item(), 4);
    EXPECT_EQ(many({tensor({1})})[0].item(), 104);
  }
}

TEST(ConformanceCapture, T108_StaticMemory) {
  auto run = [](int mode) {
    manual_seed(3);
    struct Cnn : Module {
      Conv2d conv{*this, "conv", 3, 4, 3};
      BatchNorm2d bn{*this, "bn", 4};
      Linear fc{*this, "fc", 4 * 6 * 6, 5};
    } net;
    auto body = [&](const Tensors& in) -> Tensors {
      for (Tensor& p : std::vector<Tensor>(net.parameters())) p.set_grad(Tensor());
      const Tensor y = net.fc(reshape(relu(net.bn(net.conv(in[0]))), {2, 4 * 6 * 6}));
      backward(sum(y * y));
      return {y};
    };
    CapturedStepOptions options;
    if (mode == 2) {
      options.plan.strategy = Strategy::none;
      options.executor.threads = 2;
    }
    CapturedStep step = capture(body, options);
    Tensors all;
    for (int i = 0; i < 5; ++i) {
      const Tensor x = reshape(arange(2 * 3 * 8 * 8, DType::f32), {2, 3, 8, 8}) * (0.002 * (i + 1));
      all.push_back((mode ? step({x}) : body({x}))[0].detach());
      for (const Tensor& p : net.parameters()) all.push_back(copy(p.grad()));
    }
    return all;
  };
  const Tensors eager = run(0);
  expect_same(eager, run(1));
  expect_same(eager, run(2));
}

TEST(ConformanceCapture, T110_OutputIsInputAndGradientIsHead) {
  CapturedStep same = capture([](const Tensors& in) -> Tensors { return {in[0]}; });
  CapturedStep head = capture([](const Tensors& in) -> Tensors {
    BackwardOptions options;
    options.head = in[1];
    backward(in[0] + 0, options);
    return {};
  });
  for (int i = 0; i < 5; ++i) {
    Tensor x = tensor({static_cast<float>(i), 2}), h = tensor({3, static_cast<float>(i)});
    const Tensor y = same({x})[0];
    EXPECT_EQ(floats_of(y), floats_of(x));
    fill_(y, -1);
    EXPECT_EQ(floats_of(x), (Floats{static_cast<float>(i), 2}));
    x.requires_grad(true);
    head({x, h});
    EXPECT_EQ(floats_of(x.grad()), (Floats{3, static_cast<float>(i)}));
    fill_(x.grad(), -1);
    EXPECT_EQ(floats_of(h), (Floats{3, static_cast<float>(i)}));
  }
}

// Backward starts from one of several results. An op on indices passes through.
TEST(ConformanceCapture, T111_OneOfSeveralResults) {
  Tensor w = leaf(tensor({3, 1, 2}), "w");
  CapturedStep step = capture([&](const Tensors& in) -> Tensors {
    const auto [top, index] = topk(w * in[0], 2);
    return {top, index, w * 5};
  });
  for (int i = 1; i <= 4; ++i) {
    w.set_grad(Tensor());
    const Tensors out = step({tensor({static_cast<float>(i)})});
    EXPECT_EQ(floats_of(out[0].detach()), (Floats{3.f * static_cast<float>(i), 2.f * static_cast<float>(i)}));
    backward(sum(out[0]));
    EXPECT_EQ(floats_of(w.grad()), (Floats{static_cast<float>(i), 0, static_cast<float>(i)}));
  }
}

TEST(ConformanceCapture, T113_DetachedGradient) {
  Tensor x = leaf(tensor({1, 2}), "x"), y = leaf(tensor({3, 4}), "y");
  y.set_grad(tensor({0, 0}));
  const Tensor untouched = y.grad();
  CapturedStep step = capture([&](const Tensors&) -> Tensors {
    x.set_grad(Tensor());
    backward(sum(x + y.detach()));
    return {};
  });
  for (int i = 0; i < 4; ++i) {
    step({});
    EXPECT_EQ(floats_of(x.grad()), (Floats{1, 1})) << "fresh";
    EXPECT_EQ(y.grad().impl(), untouched.impl()) << "not fresh";
    EXPECT_EQ(floats_of(y.grad()), (Floats{0, 0}));
  }
}

TEST(ConformanceCapture, T114_RetainAndSecondBackward) {
  Tensor x = leaf(tensor({1}), "x");
  CapturedStep twice = capture([&](const Tensors&) -> Tensors {
    x.set_grad(Tensor());
    const Tensor y = x * 1;
    BackwardOptions retain;
    retain.retain = true;
    backward(y, retain);
    backward(y, retain);
    return {};
  });
  for (int i = 0; i < 4; ++i) {
    twice({});
    EXPECT_EQ(floats_of(x.grad()), Floats{2});
  }
  x.set_grad(Tensor());
  CapturedStep spent = capture([&](const Tensors&) -> Tensors {
    const Tensor y = x * x;
    backward(y);
    backward(y);
    return {};
  });
  EXPECT_THROW(spent({}), GradientError);
}

TEST(ConformanceCapture, T115_GradientOfAGradient) {
  Tensor x = leaf(tensor({1}), "x");
  CapturedStep step = capture([&](const Tensors&) -> Tensors {
    x.set_grad(Tensor());
    const Tensor g = gradients({exp(x) + x}, {x}, {.create_graph = true})[0];
    backward(g);
    return {g};
  });
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(step({})[0].item(), 3.7182818, 1e-6);
    EXPECT_NEAR(x.grad().item(), 2.7182818, 1e-6);
  }
}

TEST(ConformanceCapture, T116_DropoutFollowsTheMode) {
  manual_seed(5);
  struct NormNet : Module {
    Dropout drop{*this, "drop", 0.5};
  } net;
  CapturedStep step = capture([&](const Tensors& in) -> Tensors { return {net.drop(in[0])}; });
  const Tensor x = ones({1000});
  for (int i = 0; i < 12; ++i) {
    net.train(i % 4 < 2);
    next_step();
    const double total = sum(step({x})[0]).item();
    if (i % 4 < 2)
      EXPECT_TRUE(total > 800 && total < 1200 && total != 1000) << total;
    else
      EXPECT_EQ(total, 1000);
  }
  EXPECT_EQ(step.recordings(), 4);
}

// An error is thrown at its op, and no result is returned. The next call succeeds.
TEST(ConformanceCapture, T117_ErrorsOfReplays) {
  CapturedStep step = capture([](const Tensors& in) -> Tensors {
    const Tensor picked = index_select(in[0], 0, in[1]);
    return {slice(picked, 0, 0, 1), slice(picked, 0, 1, 2)};
  });
  const Tensor x = tensor({10, 20, 30});
  auto at = [](int a, int b) { return from_vector(std::vector<std::int32_t>{a, b}, {2}); };
  for (int i = 0; i < 3; ++i) step({x, at(0, 1)});
  for (int i = 0; i < 3; ++i) {
    const std::string text = message_of<ExecutionError>([&] { step({x, at(0, 9)}); });
    EXPECT_MENTIONS(text, "[index_select]");
    EXPECT_MENTIONS(text, "conformance_capture_test.cpp:");
    const Tensors good = step({x, at(2, 0)});
    EXPECT_EQ(floats_of(good[0]), Floats{30});
    EXPECT_EQ(floats_of(good[1]), Floats{10});
  }
}

// ---- state of captured steps ----

// Lists, by name and role, the whole state of a step with batch norm, dropout and AdamW. Learning rates are inputs; the step
// counter is state.
TEST(ConformanceCapture, StateOfATrainingStep) {
  manual_seed(5);
  struct NormNet : Module {
    Linear fc{*this, "fc", 3, 4};
    BatchNorm1d bn{*this, "bn", 4};
    Dropout drop{*this, "drop", 0.5};
  } net;
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  const Tensor given = ones({5, 3});
  Capture scope("step");
  const Tensor x = scope.input("x", given);
  const Tensor loss = mean(square(net.drop(net.bn(net.fc(x)))));
  backward(loss);
  optimizer.step();
  optimizer.zero_grad();
  scope.output("loss", loss);
  const Captured c = scope.finish();
  std::vector<std::string> inputs, state;
  for (ValueId v = 0; v < c.graph.n_inputs; ++v)
    inputs.push_back(c.graph.value_name(v) + " " + to_string(c.graph.values[v].type));
  for (ValueId v = c.graph.n_inputs; v < c.graph.n_inputs + c.graph.n_state; ++v)
    state.push_back(c.graph.value_name(v) + " " + role_name(c.graph.values[v].role));
  std::sort(state.begin(), state.end());
  EXPECT_EQ(inputs, (std::vector<std::string>{"x f32[5,3]", "lr f32[]"}));
  EXPECT_EQ(state, (std::vector<std::string>{"adamw.steps counter", "bn.bias parameter", "bn.bias.m moment", "bn.bias.v moment",
                                             "bn.running_mean statistic", "bn.running_var statistic", "bn.weight parameter",
                                             "bn.weight.m moment", "bn.weight.v moment", "fc.bias parameter",
                                             "fc.bias.m moment", "fc.bias.v moment", "fc.weight parameter",
                                             "fc.weight.m moment", "fc.weight.v moment", "rng rng"}));
  EXPECT_EQ(c.report.mutated.size(), state.size()) << "all of it is updated";
  EXPECT_EQ(c.graph.updates.size(), state.size());
  for (const auto& constant : c.report.constants)
    EXPECT_EQ(constant.type.shape.rank, 0) << "numbers of the formulas: " << c.report.to_string();
  ASSERT_EQ(c.report.random.size(), 2u);
  EXPECT_EQ(c.report.random[0].name, "rng");
}

TEST(ConformanceCapture, ExplainSaysAllOfIt) {
  manual_seed(5);
  Linear* fc = nullptr;
  struct NormNet : Module {
    Linear fc{*this, "fc", 3, 4};
  } net;
  fc = &net.fc;
  Sgd optimizer(net.parameters(), {.lr = 0.01});
  const Tensor table = ones({20});
  CapturedStepOptions options;
  options.input_names = {"x"};
  CapturedStep step = capture(
      [&](const Tensors& in) -> Tensors {
        const Tensor y = dropout((*fc)(in[0]), 0.5);
        on_host(
            y, [](const Tensor&) {}, "watch");
        const Tensor loss = sum(y) + sum(table);
        backward(loss);
        optimizer.step();
        return {loss};
      },
      options);
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    step({ones({2, 3})});
  }
  const std::string text = step.explain();
  for (const char* part :
       {"recorded 2 times, replayed 2 times", "for (f32[2,3]): first call", "inputs:\n  x: f32[2,3]  declared", "  lr: f32[]",
        "  fc.weight: f32[3,4]  parameter", "updated: ", "  fc.weight: by 'sgd", "random:\n  rng: i64[2]  seed and step",
        "constants baked in:\n  constant: f32[20]  80 bytes, first read by 'sum' at conformance_capture_test.cpp:",
        "host calls:\n  watch: f32[2,4]", "outputs:\n  out0: f32[]", "gradients left:\n  grad.fc.weight", "segments"})
    EXPECT_MENTIONS(text, part);
  ASSERT_NE(step.plan(), nullptr);
  EXPECT_GT(step.plan()->peak_bytes, 0);
  const std::string json = step.explain_json();
  EXPECT_EQ(JsonDocument(json).root().find("programs")->size(), 1u) << "it is JSON";
  for (const char* part : {"\"schema\":\"tapedeck.explain/1\"", "\"recordings\":2", "\"replays\":2",
                           "\"reasons\":[\"first call\"]", "\"bytes\":80"})
    EXPECT_MENTIONS(json, part);
}

}  // namespace
}  // namespace tapedeck
