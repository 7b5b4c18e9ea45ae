// Eager code on a GPU. The oracle is the same code on the host. Without a GPU every case is skipped and says why; if
// TAPEDECK_REQUIRE_GPU is set, it fails instead.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace tapedeck {
namespace {

class EagerGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const kernels::cuda::CudaStatus& status = kernels::cuda::cuda_status();
    if (status.available) return;
    if (std::getenv("TAPEDECK_REQUIRE_GPU")) FAIL() << status.reason;
    GTEST_SKIP() << status.reason;
  }
};

// The largest difference, relative to the largest number of either.
double difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = cast(a, DType::f64).to_vector<double>(), y = cast(b, DType::f64).to_vector<double>();
  double most = 0, scale = 1e-30;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return 1e30;
    most = std::max(most, std::fabs(x[i] - y[i]));
    scale = std::max({scale, std::fabs(x[i]), std::fabs(y[i])});
  }
  return most / scale;
}

TEST_F(EagerGpu, CopiesThereAndBack) {
  const Tensor x = normal({37, 53}), y = to_device(x, "cuda");
  EXPECT_EQ(device_name(y), "cuda");
  EXPECT_TRUE(bit_equal(y, x));
  EXPECT_TRUE(bit_equal(to_device(transpose(y, {1, 0}), "cpu"), contiguous(transpose(x, {1, 0}))));
  EXPECT_EQ(y[1][2].item(), x[1][2].item());
}

TEST_F(EagerGpu, ComputesWhatTheHostComputes) {
  const auto program = [](Tensor x) {
    const NoGrad no_grad;
    Tensor row = x[3];
    copy_(row, x[0] * 3);
    const Tensor y = softmax(matmul(gelu(x), transpose(x, {1, 0})), 1);
    return concat({sum(y, {0}), mean(exp(x * 0.1), {1})}, 0);
  };
  const Tensor x = normal({40, 40});
  EXPECT_LT(difference(program(to_device(copy(x), "cuda")), program(copy(x))), 1e-5);
}

TEST_F(EagerGpu, DrawsWhatTheHostDraws) {
  manual_seed(9);
  const Tensor host = uniform({1000});
  manual_seed(9);
  const OnDevice gpu("cuda");
  EXPECT_TRUE(bit_equal(uniform({1000}), host));
}

TEST_F(EagerGpu, ThrowsAFaultAtTheNextRead) {
  const Tensor table = to_device(normal({4, 2}), "cuda");
  const Tensor rows = embedding(table, to_device(from_vector(std::vector<std::int32_t>(20, 9), {20}), "cuda"));
  try {
    rows.to_vector<float>();
    FAIL() << "no error";
  } catch (const ExecutionError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[embedding] index out of range (9)"), std::string::npos) << text;
    EXPECT_NE(text.find("eager_gpu_test.cpp:"), std::string::npos) << text;
  }
  EXPECT_EQ(sum(table).to_vector<float>().size(), 1u);
}

struct Net : Module {
  Linear one{*this, "one", 64, 256}, two{*this, "two", 256, 10};
  Tensor operator()(const Tensor& x) { return two(dropout(gelu(one(x)), 0.3)); }
};

struct Trained {
  std::vector<Tensor> parameters;
  std::vector<double> losses;
};

Trained train(const char* device, int steps) {
  manual_seed(11);
  Net net;
  const Tensor rows = normal({128, 64});
  std::vector<std::int32_t> classes(128);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int32_t>(i * 7 % 10);
  net.to(device);
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  const Tensor x = to_device(rows, device), labels = to_device(from_vector(classes, {128}), device);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const Tensor loss = mean(cross_entropy(net(x), labels));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    losses.push_back(loss.item());
  }
  return {net.parameters(), losses};
}

TEST_F(EagerGpu, TrainsAsTheHostDoes) {
  const Trained host = train("cpu", 20), gpu = train("cuda", 20), again = train("cuda", 20);
  for (std::size_t i = 0; i < host.losses.size(); ++i) EXPECT_NEAR(gpu.losses[i], host.losses[i], 1e-3) << "step " << i;
  for (std::size_t i = 0; i < gpu.parameters.size(); ++i) {
    EXPECT_LT(difference(gpu.parameters[i], host.parameters[i]), 1e-2) << i;
    EXPECT_TRUE(bit_equal(gpu.parameters[i], again.parameters[i])) << i << ": the same step gives other bits";
  }
}

TEST_F(EagerGpu, GivesItsMemoryBack) {
  const std::int64_t before = device_memory_stats("cuda").bytes_in_use;
  train("cuda", 3);
  synchronize("cuda");
  EXPECT_EQ(device_memory_stats("cuda").bytes_in_use, before);
}

// Threads on streams of their own read one tensor, write tensors of their own, and pass one on.
TEST_F(EagerGpu, ThreadsOrderTheirWork) {
  const Tensor shared = to_device(full({256, 1024}, 1.0), "cuda");
  std::vector<Tensor> sums(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&, t] {
      const NoGrad no_grad;
      Tensor mine = shared * 0.0;
      for (int i = 0; i < 200; ++i) mine = mine + shared;
      sums[t] = mine;
    });
  for (std::thread& thread : threads) thread.join();
  Tensor total = sums[0] + sums[1] + sums[2] + sums[3];
  std::thread([&] { total += total; }).join();
  const std::vector<float> numbers = total.to_vector<float>();
  EXPECT_EQ(*std::min_element(numbers.begin(), numbers.end()), 1600);
  EXPECT_EQ(*std::max_element(numbers.begin(), numbers.end()), 1600);
}

// The time of a call, as a line of the log: nothing is expected of it. The driver takes about a thousand launches; then a
// launch waits for the device.
TEST_F(EagerGpu, TellsTheCostOfACall) {
  constexpr int kCalls = 400, kRounds = 9;
  const Tensor x = to_device(normal({64, 64}), "cuda");
  const NoGrad no_grad;
  std::vector<double> submit, end;
  for (int round = 0; round < kRounds; ++round) {
    Tensor y = x;
    const auto start = std::chrono::steady_clock::now();
    const auto us = [&] {
      return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kCalls;
    };
    for (int i = 0; i < kCalls; ++i) y = add(y, x);
    submit.push_back(us());
    synchronize("cuda");
    end.push_back(us());
  }
  std::sort(submit.begin(), submit.end());
  std::sort(end.begin(), end.end());
  std::cout << "eager add 64x64: " << submit[kRounds / 2] << " us to submit, " << end[kRounds / 2] << " us to the end\n";
}

}  // namespace
}  // namespace tapedeck
