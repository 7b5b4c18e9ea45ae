// Measures eager dispatch in nanoseconds per op. The tensors are so small that the kernels take almost no time.
//
//   add/0          a 4x4 add that is not recorded
//   add/1          the same add with an operand that requires a gradient: it is recorded, and the tape is emptied each time
//   chain          forward and backward through 1000 ops, per op (each op runs once forward and once or twice backward)
//   mlp_eager      a training step of a small perceptron with AdamW, by eager calls
//   mlp_replayed   the same step as a CapturedStep, after it has recorded
//   recording_mlp, recording_block
//                  what recording for backward adds to the forward pass of a perceptron, and of a transformer block. Each
//                  iteration runs the pass twice, recorded and under NoGrad; extra_percent is the median over iterations
#include <tapedeck/tapedeck.h>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

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

template <class F>
double seconds(const F& forward) {
  const auto start = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(forward().impl());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class F>
double seconds_under_no_grad(const F& forward) {
  const NoGrad no_grad;
  return seconds(forward);
}

// The order of the two passes changes from one iteration to the next.
template <class F>
void compare_recording(benchmark::State& state, const F& forward) {
  std::vector<double> ratios;
  bool recorded_first = false;
  for (auto _ : state) {
    recorded_first = !recorded_first;
    const double first = recorded_first ? seconds(forward) : seconds_under_no_grad(forward);
    const double second = recorded_first ? seconds_under_no_grad(forward) : seconds(forward);
    ratios.push_back(recorded_first ? first / second : second / first);
  }
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
  state.counters["extra_percent"] = 100 * (ratios[ratios.size() / 2] - 1);
}

Tensor parameter(const Shape& shape) {
  Tensor t = normal(shape, 0, 0.05);
  t.requires_grad(true);
  return t;
}

void recording_mlp(benchmark::State& state) {
  const Tensor x = normal({128, 784}), y = zeros({128}, DType::i32);
  const Tensor w1 = parameter({784, 512}), w2 = parameter({512, 512}), w3 = parameter({512, 10}), b = parameter({512});
  compare_recording(state, [&] { return cross_entropy(matmul(relu(add(matmul(relu(add(matmul(x, w1), b)), w2), b)), w3), y); });
}
BENCHMARK(recording_mlp)->Unit(benchmark::kMicrosecond)->Iterations(301);

void recording_block(benchmark::State& state) {
  const Tensor x = normal({4, 128, 128}), wq = parameter({128, 128}), wk = parameter({128, 128}), wv = parameter({128, 128});
  const Tensor wo = parameter({128, 128}), up = parameter({128, 512}), down = parameter({512, 128});
  const auto heads = [](const Tensor& t) { return permute(reshape(t, {4, 128, 4, 32}), {0, 2, 1, 3}); };
  compare_recording(state, [&] {
    const Tensor y =
        scaled_dot_product_attention(heads(matmul(x, wq)), heads(matmul(x, wk)), heads(matmul(x, wv)), {.causal = true});
    const Tensor h = add(x, matmul(reshape(permute(y, {0, 2, 1, 3}), {4, 128, 128}), wo));
    return add(h, matmul(gelu(matmul(h, up)), down));
  });
}
BENCHMARK(recording_block)->Unit(benchmark::kMicrosecond)->Iterations(301);

}  // namespace
