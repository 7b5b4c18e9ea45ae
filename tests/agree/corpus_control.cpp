// Hand-written programs with loops and branches. They vary the number of iterations, the branch taken, the carried values,
// the captured values, and the values recomputed for the gradient.
#include <tapedeck/tests/agree/corpus.h>

#include <tapedeck/engine/ops/control.h>

namespace tapedeck::agree {

PROGRAM(loop_until_large) {
  p.branches();
  p.input({3}, {0.5, 1});
  const Tensor w = p.parameter("w", {3}, {1.2, 1.9});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const LoopResult r = while_loop([](const Tensors& c) { return less(sum(c[0]), 20); },
                                        [=](const Tensors& c) -> Tensors { return {c[0] * w}; }, {in[0]});
        return {sum(square(r.carried[0])), r.carried[0], r.trips};
      },
      {w});
}

PROGRAM(loop_that_never_runs) {
  p.branches();
  p.input({2});
  const Tensor w = p.parameter("w", {2});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const LoopResult r = while_loop([](const Tensors& c) { return greater(sum(c[0]), 100); },
                                        [=](const Tensors& c) -> Tensors { return {c[0] * w}; }, {in[0] * w});
        return {sum(r.carried[0]), r.trips};
      },
      {w});
}

PROGRAM(loop_that_counts) {
  p.input({}, {1, 9}, DType::i64);
  const Tensor total = p.buffer("total", {}, {0, 1}, DType::i64);
  p.step([=](const Tensors& in) -> Tensors {
    const LoopResult r = while_loop([](const Tensors& c) { return less_equal(c[0], c[2]); },
                                    [](const Tensors& c) -> Tensors {
                                      return {c[0] + 1, c[1] + c[0]};
                                    },
                                    {zeros({}, DType::i64), zeros({}, DType::i64)}, {in[0]});
    add_(total, r.carried[1]);
    return {r.carried[1], total};
  });
}

PROGRAM(loop_that_stacks) {
  p.branches();
  p.input({2});
  const Tensor w = p.parameter("w", {2});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const LoopResult r = while_loop([](const Tensors& c) { return less(sum(abs(c[0])), 3); },
                                        [=](const Tensors& c) -> Tensors {
                                          return {c[0] * 1.5 + w * 0.1, tanh(c[0])};
                                        },
                                        {in[0]}, {}, {.max_trips = 6});
        return {mean(r.stacked[0]) + sum(r.carried[0]), r.stacked[0], r.trips};
      },
      {w});
}

PROGRAM(loop_in_a_loop) {
  p.branches();
  p.input({2}, {0.1, 0.5});
  const Tensor w = p.parameter("w", {2}, {0.8, 1.2});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const auto inner = [=](const Tensor& x) {
          return while_loop([](const Tensors& c) { return less(max(c[0]), 2); },
                            [=](const Tensors& c) -> Tensors { return {c[0] + w * x}; }, {x}, {}, {.max_trips = 4})
              .carried[0];
        };
        const LoopResult r = while_loop([](const Tensors& c) { return less(c[1], 3); },
                                        [=](const Tensors& c) -> Tensors {
                                          return {tanh(inner(c[0])), c[1] + 1};
                                        },
                                        {in[0], zeros({}, DType::i32)});
        return {sum(r.carried[0])};
      },
      {w});
}

PROGRAM(branch_on_data) {
  p.branches();
  p.input({4});
  const Tensor w = p.parameter("w", {4}), v = p.parameter("v", {4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor y = cond(
            greater(sum(in[0]), 0), [=](const Tensors& x) -> Tensors { return {x[0] * w}; },
            [=](const Tensors& x) -> Tensors { return {exp(x[0]) * v}; }, {in[0]})[0];
        return {sum(square(y)), y};
      },
      {w, v});
}

PROGRAM(branch_in_a_loop) {
  p.branches();
  p.input({3});
  const Tensor w = p.parameter("w", {3}, {0.5, 1.5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const auto body = [=](const Tensors& c) -> Tensors {
          const Tensor next = cond(
              greater(sum(c[0]), 0.5), [=](const Tensors& x) -> Tensors { return {x[0] * 0.5 - w}; },
              [=](const Tensors& x) -> Tensors { return {x[0] + w * w}; }, {c[0]})[0];
          return {next, c[1] + 1};
        };
        const LoopResult r = while_loop([](const Tensors& c) { return less(c[1], 5); }, body, {in[0], zeros({}, DType::i32)});
        return {sum(sin(r.carried[0])), r.carried[0]};
      },
      {w});
}

PROGRAM(loop_in_a_branch) {
  p.branches();
  p.input({3});
  const Tensor w = p.parameter("w", {3}, {0.5, 1.5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const auto looped = [=](const Tensors& x) -> Tensors {
          return scan([=](const Tensors& c) -> Tensors { return {tanh(c[0] + w)}; }, {x[0]}, {}, {}, {.max_trips = 3}).carried;
        };
        return {
            sum(cond(less(mean(in[0]), 0), looped, [](const Tensors& x) -> Tensors { return {x[0] * 2}; }, {in[0] * w})[0])};
      },
      {w});
}

namespace {

// Trains a recurrent cell over time. `checkpoint` chooses which carried values the scan keeps.
void train_scan(Program& p, std::int64_t checkpoint, bool reverse) {
  p.branches();
  p.input({6, 2, 3});
  const Tensor w = p.parameter("w", {3, 4}), u = p.parameter("u", {4, 4}), h0 = p.parameter("h0", {2, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const LoopResult r = scan(
            [=](const Tensors& c) -> Tensors {
              const Tensor h = tanh(matmul(c[1], w) + matmul(c[0], u));
              return {h, h * h};
            },
            {h0}, {in[0]}, {}, {.checkpoint_every = checkpoint, .reverse = reverse});
        return {mean(r.stacked[0]) + sum(r.carried[0]), r.stacked[0]};
      },
      {w, u, h0});
}

}  // namespace

PROGRAM(scan_over_time) { train_scan(p, 0, false); }
PROGRAM(scan_backwards) { train_scan(p, 0, true); }
PROGRAM(scan_keeping_every_other) { train_scan(p, 2, false); }
PROGRAM(scan_keeping_sqrt) { train_scan(p, kCheckpointSqrt, false); }
PROGRAM(scan_keeping_log) { train_scan(p, kCheckpointLog, true); }

PROGRAM(scan_that_stacks_what_it_carries) {
  p.branches();
  p.input({6, 2, 3});
  const Tensor w = p.parameter("w", {3, 4}), u = p.parameter("u", {4, 4}), h0 = p.parameter("h0", {2, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const LoopResult r = scan(
            [=](const Tensors& c) -> Tensors {
              const Tensor h = tanh(matmul(c[1], w) + matmul(c[0], u) * sigmoid(c[0]) + c[0] * 0.3);
              return {h, h, h};
            },
            {h0}, {in[0]});
        return {mean(r.stacked[0] * 3) + mean(square(r.stacked[1])) + sum(r.carried[0]), r.stacked[0]};
      },
      {w, u, h0});
}

PROGRAM(map_over_an_axis) {
  p.branches();
  p.input({3, 4});
  const Tensor w = p.parameter("w", {3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor y = map([=](const Tensors& x) -> Tensors { return {softmax(x[0] * w)}; }, {in[0]}, {.axis = 1})[0];
        return {sum(y * in[0]), y};
      },
      {w});
}

PROGRAM(dropout_in_a_scan) {
  p.branches();
  p.input({4, 3});
  const Tensor w = p.parameter("w", {3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const LoopResult r =
            scan([=](const Tensors& c) -> Tensors { return {dropout(c[0] + c[1] * w, 0.5)}; }, {zeros({3})}, {in[0]});
        return {sum(r.carried[0]), dropout(in[0], 0.5)};
      },
      {w});
}

PROGRAM(loop_between_layers) {
  p.branches();
  p.input({4, 3});
  struct Net : Module {
    Linear in{*this, "in", 3, 4}, again{*this, "again", 4, 4};
  };
  Net& net = p.own<Net>();
  p.watch(net);
  AdamW& adamw = p.own<AdamW>(net.parameters(), AdamWOptions{.lr = 0.01});
  p.train(
      [&net](const Tensors& in) -> Tensors {
        const LoopResult r =
            while_loop([](const Tensors& c) { return less(mean(square(c[0])), 2); },
                       [&net](const Tensors& c) -> Tensors { return {relu(net.again(c[0])) + c[0] * 1.3 + 0.1}; },
                       {net.in(in[0])}, {}, {.max_trips = 8});
        return {mean(r.carried[0])};
      },
      net.parameters(), &adamw);
}

}  // namespace tapedeck::agree
