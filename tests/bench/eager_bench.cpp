// Measures eager dispatch in nanoseconds per op. The tensors are so small that the kernels take almost no time.
//
//   add/0          a 4x4 add that is not recorded
//   add/1          the same add with an operand that requires a gradient: it is recorded, and the tape is emptied each time
//   chain          forward and backward through 1000 ops, per op (each op runs once forward and once or twice backward)
//   mlp_eager      a training step of a small perceptron with AdamW, by eager calls
//   mlp_replayed   the same step as a CapturedStep, after it has recorded
#include <tapedeck/tapedeck.h>

#include <benchmark/benchmark.h>

namespace {

using namespace tapedeck;

void per_op(benchmark::State& state, double ops) {
  state.counters["ns_per_op"] = benchmark::Counter(static_cast<double>(state.iterations()) * ops / 1e9,
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void add_4x4(benchmark::State& state) {
  Tensor a = ones({4, 4}), b = ones({4, 4});
  a.requires_grad(state.range(0) != 0);
  for (auto _ : state) {
    const Tensor c = add(a, b);
    benchmark::DoNotOptimize(c.impl());
  }
  per_op(state, 1);
}
BENCHMARK(add_4x4)->Name("add")->ArgName("recorded")->Arg(0)->Arg(1);

void chain(benchmark::State& state) {
  constexpr int kOps = 1000;
  Tensor x = ones({4, 4});
  x.requires_grad(true);
  const Tensor head = ones({4, 4});
  for (auto _ : state) {
    Tensor h = x;
    for (int i = 0; i < kOps; ++i) h = tanh(h);
    backward(h, {.head = head});
    x.set_grad(Tensor());
  }
  per_op(state, kOps);
}
BENCHMARK(chain);

struct Net : Module {
  Linear fc1{*this, "fc1", 64, 32}, fc2{*this, "fc2", 32, 10};
  Dropout drop{*this, "drop", 0.2};
  AdamW optimizer{parameters()};
  std::vector<Tensor> step(const std::vector<Tensor>& in) {
    const Tensor loss = cross_entropy(fc2(drop(relu(fc1(in[0])))), in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  }
};

std::vector<Tensor> batch() {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 32; ++i) labels.push_back(i % 10);
  return {normal({32, 64}), from_vector(labels, {32})};
}

void mlp_eager(benchmark::State& state) {
  manual_seed(1);
  Net net;
  const std::vector<Tensor> in = batch();
  for (auto _ : state) benchmark::DoNotOptimize(net.step(in)[0].impl());
}
BENCHMARK(mlp_eager)->Unit(benchmark::kMicrosecond);

void mlp_replayed(benchmark::State& state) {
  manual_seed(1);
  Net net;
  const std::vector<Tensor> in = batch();
  CapturedStep step = capture([&](const std::vector<Tensor>& inputs) { return net.step(inputs); });
  for (int recording = 0; recording < 2; ++recording) step(in);
  for (auto _ : state) benchmark::DoNotOptimize(step(in)[0].impl());
  state.counters["replays"] = step.replays();
}
BENCHMARK(mlp_replayed)->Unit(benchmark::kMicrosecond);

}  // namespace
