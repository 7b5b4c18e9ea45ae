// Tests loops and branches. In eager code they are ordinary C++ control flow; in a capture they are nodes. Both must give
// the same bits, gradients included.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/capture/replay/control_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <cmath>
#include <map>

namespace tapedeck::testing {
namespace {

int count_nodes(const Graph& g, const std::string& op) {
  int n = 0;
  for (const Node& node : g.nodes) n += node.op->name == op;
  return n;
}

Tensor below(const Tensor& x, double limit) { return less(sum(x), limit); }

Tensors with_gradients(const Tensor& target, const Tensors& wrt, Tensors results = {}) {
  const Tensors all = gradients({target}, wrt);
  results.push_back(target);
  results.insert(results.end(), all.begin(), all.end());
  return results;
}

// ---- while_loop ----

TEST(WhileLoop, RunsAsOftenAsTheDataSay) {
  for (float start : {0.5f, 3.0f, 200.0f}) {
    Tensors eager;
    const Graph g = check_program(
        [](const Tensors& x) {
          const LoopResult r = while_loop([](const Tensors& c) { return below(c[0], 100); },
                                          [](const Tensors& c) { return Tensors{c[0] * 1.5 + 0.25}; }, {x[0]});
          return Tensors{r.carried[0], r.trips};
        },
        {from_vector(std::vector<float>{start, 0.0f, 1.0f}, {3})}, &eager);
    EXPECT_EQ(count_nodes(g, "while"), 1);
    int trips = 0;
    for (std::vector<float> x{start, 0, 1}; x[0] + x[1] + x[2] < 100; ++trips)
      for (float& v : x) v = v * 1.5f + 0.25f;
    EXPECT_EQ(eager[1].item(), trips);
  }
}

TEST(WhileLoop, GradientsOfCarriedAndCapturedValues) {
  for (std::int64_t every : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, kCheckpointSqrt, kCheckpointLog}) {
    SCOPED_TRACE(every);
    check_program(
        [every](const Tensors& in) {
          const Tensor &x = in[0], &w = in[1], &b = in[2];
          LoopOptions options;
          options.checkpoint_every = every;
          const LoopResult r =
              while_loop([](const Tensors& c) { return below(c[0] * c[0], 1000); },
                         [&](const Tensors& c) { return Tensors{tanh(c[0]) * w + c[0] * 1.1 + c[1]}; }, {x}, {b}, options);
          const Tensor loss = sum(r.carried[0] * w);
          return with_gradients(loss, {x, w, b}, {r.trips});
        },
        {leaf({0.5f, -0.25f, 1.5f}, {3}), leaf({1.5f, 2.5f, -0.5f}, {3}), leaf({0.1f, 0.2f, -0.3f}, {3})});
  }
}

TEST(WhileLoop, NestedWithABranchInside) {
  const Graph g = check_program(
      [](const Tensors& in) {
        const Tensor &x = in[0], &w = in[1];
        const LoopResult r =
            while_loop([](const Tensors& c) { return less(c[1], 3.0); },
                       [&](const Tensors& c) {
                         // In each iteration of the outer loop, the inner loop runs another number of times.
                         const LoopResult inner = while_loop([&](const Tensors& d) { return less(d[1], c[1] + 1.0); },
                                                             [&](const Tensors& d) {
                                                               return Tensors{d[0] * w + 0.5, d[1] + 0.5};
                                                             },
                                                             {c[0], scalar(0.0)});
                         const Tensors y = cond(
                             less(sum(inner.carried[0]), 4.0), [&](const Tensors& v) { return Tensors{v[0] * v[0]}; },
                             [&](const Tensors& v) { return Tensors{sqrt(abs(v[0]) + 1.0) + w}; }, {inner.carried[0]});
                         return Tensors{y[0], c[1] + 1.0};
                       },
                       {x, scalar(0.0)});
        return with_gradients(sum(r.carried[0]), {x, w}, {r.trips});
      },
      {leaf({0.5f, 0.75f}, {2}), leaf({0.9f, 1.2f}, {2})});
  EXPECT_EQ(count_nodes(g, "while"), 1);
  EXPECT_EQ(count_nodes(g, "loop_grad"), 1);
}

TEST(WhileLoop, StacksResultsUpToABound) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        LoopOptions options;
        options.max_trips = 6;
        const LoopResult r = while_loop([](const Tensors& c) { return less(c[0], 4.0); },
                                        [&](const Tensors& c) {
                                          return Tensors{c[0] + 1.0, c[0] * in[1], c[0] * c[0]};
                                        },
                                        {in[0]}, {}, options);
        return with_gradients(sum(r.stacked[0] * r.stacked[1]), {in[0], in[1]}, {r.stacked[0], r.stacked[1]});
      },
      {leaf({1.0f}), leaf({2.0f})}, &eager);
  EXPECT_EQ(eager[0].to_vector<float>(), (std::vector<float>{2, 4, 6, 0, 0, 0}));
}

TEST(WhileLoop, ABoundStopsIt) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        LoopOptions options;
        options.max_trips = 5;
        const LoopResult r = while_loop([](const Tensors& c) { return less(c[0], 1e9); },
                                        [](const Tensors& c) { return Tensors{c[0] + 1.0}; }, {in[0]}, {}, options);
        return Tensors{r.carried[0], r.trips};
      },
      {scalar(0)}, &eager);
  EXPECT_EQ(eager[1].item(), 5);
}

TEST(WhileLoop, DropoutDrawsAnewInEveryPassAndTheSameInReplay) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        const LoopResult r = scan(
            [&](const Tensors& c) {
              return Tensors{c[0], dropout(in[0], 0.5)};
            },
            {scalar(0.0)}, {}, {}, {.max_trips = 3});
        return with_gradients(sum(r.stacked[0]), {in[0]}, {r.stacked[0], dropout(in[0], 0.5)});
      },
      {leaf(std::vector<float>(64, 1.0f), {64})}, &eager);
  const Tensor a = select(eager[0], 0, 0), b = select(eager[0], 0, 1);
  EXPECT_FALSE(bit_equal(contiguous(a), contiguous(b)));
}

// ---- scan and map ----

TEST(Scan, AnRnnCellOverTime) {
  for (std::int64_t every : {std::int64_t{0}, std::int64_t{2}, kCheckpointSqrt, kCheckpointLog})
    for (bool reverse : {false, true}) {
      SCOPED_TRACE(every);
      const Graph g = check_program(
          [=](const Tensors& in) {
            LoopOptions options;
            options.checkpoint_every = every;
            options.reverse = reverse;
            const LoopResult r = scan(
                [&](const Tensors& c) {
                  const Tensor h = tanh(matmul(c[1], in[2]) + matmul(c[0], in[3]));
                  return Tensors{h, h * 2.0};
                },
                {in[0]}, {in[1]}, {}, options);
            return with_gradients(sum(r.stacked[0] * r.stacked[0]) + sum(r.carried[0]), {in[0], in[1], in[2], in[3]},
                                  {r.carried[0], r.stacked[0]});
          },
          {leaf({0.1f, -0.2f, 0.3f, 0.4f, 0.5f, -0.6f}, {2, 3}), leaf(std::vector<float>(7 * 2 * 2, 0.25f), {7, 2, 2}),
           leaf({0.5f, -0.1f, 0.2f, 0.3f, 0.7f, -0.4f}, {2, 3}),
           leaf({0.1f, 0.2f, -0.3f, 0.4f, -0.5f, 0.6f, 0.7f, -0.8f, 0.9f}, {3, 3})});
      EXPECT_EQ(count_nodes(g, "scan"), every == 0 ? 2 : 1);  // the backward is a second scan in the opposite direction
      EXPECT_EQ(count_nodes(g, "loop_grad"), every == 0 ? 0 : 1);
    }
}

TEST(Scan, AlongAnotherAxisAndOfSeveralOperands) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        LoopOptions options;
        options.axis = 1;
        const LoopResult r = scan(
            [](const Tensors& c) {
              return Tensors{c[0] + c[1] * c[2], c[0]};
            },
            {full({2}, 0)}, {in[0], in[1]}, {}, options);
        return with_gradients(sum(r.carried[0]), {in[0], in[1]}, {r.stacked[0]});
      },
      {leaf({1, 2, 3, 4, 5, 6}, {2, 3}), leaf({6, 5, 4, 3, 2, 1}, {2, 3})}, &eager);
  EXPECT_EQ(eager[0].type().shape, (Shape{2, 3}));
  EXPECT_EQ(eager[1].item(), 1 * 6 + 2 * 5 + 3 * 4 + 4 * 3 + 5 * 2 + 6 * 1);
}

TEST(Scan, NoSlicesAndNoPasses) {
  check_program(
      [](const Tensors& in) {
        const LoopResult r = scan([&](const Tensors& c) { return Tensors{c[0] * c[1], c[0]}; }, {in[0]}, {in[1]});
        return with_gradients(sum(r.carried[0]), {in[0]}, {r.stacked[0]});
      },
      {leaf({1, 2}, {2}), from_vector(std::vector<float>{}, {0, 2})});
}

TEST(Scan, ASecondGradient) {
  check_program(
      [](const Tensors& in) {
        const LoopResult r = scan([&](const Tensors& c) { return Tensors{c[0] * c[1] + in[2]}; }, {in[0]}, {in[1]});
        const Tensor first = gradients({sum(r.carried[0] * r.carried[0])}, {in[0]}, {.create_graph = true})[0];
        return with_gradients(sum(first * first), {in[0], in[1], in[2]});
      },
      {leaf({1.5f, 2.0f}, {2}), leaf({0.5f, 0.25f, 1.5f, 2.0f, -1.0f, 0.5f}, {3, 2}), leaf({0.3f, 0.1f}, {2})});
}

TEST(Map, AppliesAFunctionToEverySlice) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        return with_gradients(sum(map([](const Tensors& x) { return Tensors{exp(x[0]) * x[1]}; }, {in[0], in[1]})[0]),
                              {in[0], in[1]});
      },
      {leaf({0, 1, 2, 3}, {4}), leaf({1, 2, 3, 4}, {4})}, &eager);
  EXPECT_NEAR(eager[0].item(), 1 + 2 * std::exp(1.0) + 3 * std::exp(2.0) + 4 * std::exp(3.0), 1e-3);
}

// ---- cond (branches) ----

TEST(Cond, EitherBranchAndItsGradient) {
  for (float x : {-1.0f, 2.0f})
    check_program(
        [](const Tensors& in) {
          const Tensors y = cond(
              less(sum(in[0]), 0.0),
              [&](const Tensors& v) {
                return Tensors{v[0] * in[1], v[0]};
              },
              [&](const Tensors& v) {
                return Tensors{exp(v[0]) + in[1] * in[1], in[1]};
              },
              {in[0]});
          return with_gradients(sum(y[0] * y[1]), {in[0], in[1]}, {y[0]});
        },
        {leaf({x, x}, {2}), leaf({3, 4}, {2})});
}

// ---- control flow inside a training step ----

TEST(ControlFlow, CheckpointsDropoutAndNoGradInsideABody) {
  for (std::int64_t every : {std::int64_t{0}, kCheckpointSqrt})
    check_program(
        [every](const Tensors& in) {
          LoopOptions options;
          options.checkpoint_every = every;
          const LoopResult r = scan(
              [&](const Tensors& c) {
                const Tensor h = checkpoint([&] { return tanh(dropout(c[0], 0.25) * in[1] + c[1]); });
                Tensor scale;
                {
                  const NoGrad no_grad;
                  scale = sum(h * h) + 1.0;
                }
                return Tensors{h / scale, h};
              },
              {in[0]}, {in[2]}, {}, options);
          return with_gradients(sum(r.stacked[0]) + sum(r.carried[0]), {in[0], in[1], in[2]}, {r.carried[0]});
        },
        {leaf(std::vector<float>(8, 0.5f), {8}), leaf(std::vector<float>(8, 1.25f), {8}),
         leaf(std::vector<float>(5 * 8, 0.125f), {5, 8})});
}

TEST(ControlFlow, GradientsOfWindowsReadInEveryPass) {
  check_program(
      [](const Tensors& in) {
        const LoopResult r =
            scan([&](const Tensors& c) { return Tensors{c[0] * slice(in[1], 0, 0, 2) + slice(in[1], 0, 1, 3) * c[1]}; },
                 {in[0]}, {in[2]});
        return with_gradients(sum(r.carried[0]), {in[0], in[1], in[2]});
      },
      {leaf({1, -2}, {2}), leaf({0.5f, -0.0f, 1.5f, 7, 8}, {5}), leaf({1, 2, 0, -1, 3, -0.0f}, {3, 2})});
}

TEST(ControlFlow, ATensorThatIsCarriedAndScannedAndCaptured) {
  for (std::int64_t every : {std::int64_t{0}, std::int64_t{2}})
    check_program(
        [every](const Tensors& in) {
          const Tensor v = tanh(in[0]);
          LoopOptions options;
          options.checkpoint_every = every;
          const LoopResult r = scan(
              [&](const Tensors& c) {
                return Tensors{c[0] * v + c[1], c[0] * c[2]};
              },
              {v, exp(v)}, {v}, {}, options);
          const LoopResult s = while_loop([](const Tensors& c) { return below(c[0], 50); },
                                          [&](const Tensors& c) { return Tensors{c[0] * 1.5 + abs(v)}; }, {v * v});
          return with_gradients(sum(r.carried[0] * v) + sum(s.carried[0] * v), {in[0]});
        },
        {leaf({0.3f, 0.7f, -1.1f}, {3})});
}

TEST(ControlFlow, TracingLeavesTheHistoryOfWhatItReadsAlone) {
  // Even eager code traces a loop without iterations, to find its types. The body reads a tensor and a view of it; the trace
  // must not change their history.
  const Tensor x = leaf(std::vector<float>(24, 0.5f), {4, 6}), window = slice(reshape(x, {24}), 0, 0, 15);
  LoopOptions options;
  options.max_trips = 4;
  while_loop([](const Tensors& c) { return below(c[0], -1); },
             [&](const Tensors& c) {
               return Tensors{c[0] + sum(x), window};
             },
             {full({}, 1)}, {}, options);
  backward(mean(window) + mean(x));
  EXPECT_NEAR(x.grad().to_vector<float>()[0], 1.0 / 15 + 1.0 / 24, 1e-6);
}

struct Recurrent : Module {
  Linear in{*this, "in", 3, 8}, hidden{*this, "hidden", 8, 8}, out{*this, "out", 8, 2};
};

TEST(ControlFlow, ARecurrentNetTrainsAlikeEagerlyAndCaptured) {
  auto train = [](bool captured) {
    manual_seed(3);
    Recurrent net;
    AdamW optimizer(net.parameters(), {});
    auto step = [&](const Tensors& in) {
      const LoopResult r = scan([&](const Tensors& c) { return Tensors{tanh(net.in(c[1]) + net.hidden(dropout(c[0], 0.1)))}; },
                                {full({4, 8}, 0)}, {in[0]});
      const Tensor loss = cross_entropy(net.out(r.carried[0]), in[1]);
      optimizer.zero_grad();
      backward(loss);
      optimizer.step();
      return Tensors{loss};
    };
    CapturedStep replayed = capture(step);
    Tensors all;
    for (int i = 0; i < 5; ++i) {
      const Tensor x = full({6, 4, 3}, 0.1 * (i + 1)), y = from_vector(std::vector<std::int32_t>{0, 1, 1, 0}, {4});
      all.push_back((captured ? replayed({x, y}) : step({x, y}))[0].detach());
    }
    for (const Tensor& p : net.parameters()) all.push_back(p.detach());
    EXPECT_EQ(replayed.replays(), captured ? 3 : 0);
    return copies(all);
  };
  expect_same(train(true), train(false), "training");
}

// ---- memory of loops ----

TEST(LoopMemory, ATapeHoldsWhatTheScheduleSays) {
  for (std::int64_t trips : {1, 2, 3, 5, 16, 17, 100, 1000})
    for (std::int64_t every : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, kCheckpointSqrt, kCheckpointLog}) {
      // A carry is the number of its iteration. The counter counts the carries that are alive.
      struct Counter {
        std::int64_t alive = 0, most = 0;
      } counter;
      struct Carry {
        std::shared_ptr<std::int64_t> at;
      };
      auto make = [&](std::int64_t i) {
        counter.most = std::max(counter.most, ++counter.alive);
        return Carry{std::shared_ptr<std::int64_t>(new std::int64_t(i), [&](std::int64_t* p) {
          --counter.alive;
          delete p;
        })};
      };
      std::int64_t next = trips, runs = 0;
      walk_back(
          trips, every, make(0),
          [&](const Carry& c, std::int64_t i) {
            EXPECT_EQ(*c.at, i);
            ++runs;
            return make(i + 1);
          },
          [&](const Carry& c, std::int64_t i) {
            EXPECT_EQ(*c.at, i);
            EXPECT_EQ(i, --next);
          });
      EXPECT_EQ(next, 0);
      EXPECT_LE(counter.most, tape_entries(trips, every)) << trips << " every " << every;
      if (every == 0) {
        EXPECT_EQ(runs, trips - 1);
      }
      if (every == kCheckpointSqrt) {
        EXPECT_LE(counter.most, 2 * std::sqrt(static_cast<double>(trips)) + 3);
      }
      if (every == kCheckpointLog) {
        EXPECT_LE(counter.most, std::log2(static_cast<double>(trips)) + 3);
        EXPECT_LE(static_cast<double>(runs), static_cast<double>(trips) * (std::log2(static_cast<double>(trips)) + 1));
      }
    }
}

TEST(LoopMemory, CheckpointsBoundThePlannedPeak) {
  std::map<std::int64_t, std::int64_t> peak;
  for (std::int64_t every : {std::int64_t{0}, std::int64_t{16}, kCheckpointSqrt, kCheckpointLog}) {
    const Graph g = check_program(
        [every](const Tensors& in) {
          LoopOptions options;
          options.max_trips = 256;
          options.checkpoint_every = every;
          const LoopResult r = scan([&](const Tensors& c) { return Tensors{tanh(c[0] * in[1])}; }, {in[0]}, {}, {}, options);
          return with_gradients(sum(r.carried[0]), {in[0], in[1]});
        },
        {leaf(std::vector<float>(1024, 0.5f), {1024}), leaf(std::vector<float>(1024, 1.5f), {1024})});
    peak[every] = make_plan(g).arena_bytes;
  }
  EXPECT_GT(peak[0], 256 * 4096);
  EXPECT_LT(peak[16], 50 * 4096);
  EXPECT_LT(peak[kCheckpointSqrt], 50 * 4096);
  EXPECT_LT(peak[kCheckpointLog], 26 * 4096);
}

// ---- mistakes and their messages ----

TEST(ControlFlow, MistakesAreNamed) {
  const Tensor x = tensor({1, 2});
  const auto yes = [](const Tensors&) { return from_bytes({DType::boolean, {}}, "\1"); };
  EXPECT_THROW(while_loop(yes, [](const Tensors&) { return Tensors{}; }, {x}), TypeError);
  EXPECT_NE(message_of<TypeError>([&] {
              while_loop(yes, [](const Tensors&) { return Tensors{}; }, {x});
            }).find("[while] the body gives 0 results, but 1 values are carried ("),
            std::string::npos);
  EXPECT_NE(message_of<TypeError>([&] {
              while_loop(yes, [](const Tensors& c) { return Tensors{sum(c[0])}; }, {x});
            }).find("the body makes f32[] of carried value 0, which is f32[2]"),
            std::string::npos);
  EXPECT_NE(message_of<TypeError>([&] {
              while_loop([](const Tensors& c) { return c[0]; }, [](const Tensors& c) { return c; }, {x});
            }).find("the condition must be bool[], not f32[2]"),
            std::string::npos);
  EXPECT_NE(message_of<TypeError>([&] {
              scan([](const Tensors& c) { return c; }, {x}, {});
            }).find("max_trips does not say how many passes"),
            std::string::npos);
  EXPECT_NE(message_of<TypeError>([&] {
              scan([](const Tensors& c) { return c; }, {}, {x, tensor({1, 2, 3})});
            }).find("operand 1 has 3 slices, not 2"),
            std::string::npos);
  EXPECT_NE(message_of<TypeError>([&] {
              cond(
                  x, [](const Tensors& v) { return v; }, [](const Tensors& v) { return v; });
            }).find("[cond] the predicate must be bool[], not f32[2]"),
            std::string::npos);
}

TEST(ControlFlow, MistakesInACaptureAreNamedAndTheNextCaptureWorks) {
  Tensor x = tensor({1, 2}), outer = tensor({5, 6});
  outer.name("outer");
  auto captured = [&]<class E>(const E*, const std::function<void(const Tensor&)>& body) {
    return message_of<E>([&] {
      Capture capture("c");
      body(capture.input("x", x));
    });
  };
  const CaptureError* const capture_error = nullptr;
  const TypeError* const type_error = nullptr;
  EXPECT_NE(captured(capture_error,
                     [&](const Tensor& in) {
                       while_loop([](const Tensors& c) { return below(c[0], 10); },
                                  [&](const Tensors& c) {
                                    add_(outer, c[0]);
                                    return Tensors{c[0] + outer};
                                  },
                                  {in});
                     })
                .find("writes f32[2] 'outer' from outside in place; carry it instead"),
            std::string::npos);
  EXPECT_NE(captured(capture_error,
                     [&](const Tensor& in) {
                       while_loop([](const Tensors& c) { return below(c[0], 10); },
                                  [&](const Tensors& c) { return Tensors{c[0] * c[0].item()}; }, {in});
                     }),
            "");
  EXPECT_NE(captured(type_error,
                     [&](const Tensor& in) {
                       cond(
                           below(in, 1), [](const Tensors& v) { return v; },
                           [](const Tensors& v) { return Tensors{sum(v[0])}; }, {in});
                     })
                .find("result 0 is f32[2] in one branch and f32[] in the other"),
            std::string::npos);
  check_program(
      [](const Tensors& in) {
        return while_loop([](const Tensors& c) { return below(c[0], 10); },
                          [](const Tensors& c) { return Tensors{c[0] + 1.0}; }, {in[0]})
            .carried;
      },
      {x});
}

}  // namespace
}  // namespace tapedeck::testing
