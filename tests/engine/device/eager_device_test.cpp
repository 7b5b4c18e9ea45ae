// Eager code on a device with a memory of its own: the fake device (fake_device.h) runs CPU kernels, so every result must have
// the bits of the host.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/device/fake_device.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::FakeDevice;
using testing::message_of;

class EagerDeviceTest : public ::testing::Test {
 protected:
  FakeDevice gpu_;
  ScopedEagerDevice scope_{"cuda", gpu_};
};

Tensor numbers(const Shape& shape) {
  std::vector<float> v(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = 0.01f * static_cast<float>((i * 37) % 101) - 0.4f;
  return from_vector(v, shape);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Net : Module {
  Linear one{*this, "one", 6, 8}, two{*this, "two", 8, 3};
  Tensor operator()(const Tensor& x) { return two(dropout(gelu(one(x)), 0.3)); }
};

TEST_F(EagerDeviceTest, CopiesThereAndBack) {
  const Tensor x = numbers({3, 5}), y = to_device(x, "cuda");
  EXPECT_EQ(device_name(x), "cpu");
  EXPECT_EQ(device_name(y), "cuda");
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
  const Tensor turned = to_device(transpose(y, {1, 0}), "cpu"), expected = transpose(x, {1, 0});
  EXPECT_EQ(turned.to_vector<float>(), expected.to_vector<float>());
  EXPECT_TRUE(bit_equal(x, y));
  EXPECT_EQ(y[1].to_vector<float>(), x[1].to_vector<float>());
  EXPECT_EQ(sum(y).item(), sum(x).item());
  const std::string message = message_of<DeviceError>([&] { y.data(); });
  EXPECT_TRUE(has(message, "on cuda; copy it with to_device(x, \"cpu\")")) << message;
  message_of<DeviceError>([&] { Tensor(y).mutable_data(); });
}

TEST_F(EagerDeviceTest, RunsWhereTheOperandsAre) {
  const Tensor x = numbers({4, 3}), y = to_device(x, "cuda");
  const Tensor z = relu(matmul(y, transpose(y, {1, 0}))) * 2 + scalar(1);
  EXPECT_EQ(device_name(z), "cuda");
  EXPECT_GT(gpu_.waiting(), 0u) << "the ops have run at once";
  EXPECT_TRUE(bit_equal(z, relu(matmul(x, transpose(x, {1, 0}))) * 2 + scalar(1)));
  const std::string message = message_of<DeviceError>([&] { add(y, numbers({40, 4, 3})); });
  EXPECT_TRUE(has(message, "[add]") && has(message, "operand 1 is on cpu") && has(message, "eager_device_test.cpp:"))
      << message;
}

TEST_F(EagerDeviceTest, RefusesResultsThatAreElsewhere) {
  Net net;
  AdamW before(net.parameters(), {.lr = 0.01});
  backward(sum(net(numbers({5, 6}))));
  before.step();
  before.zero_grad();
  net.to("cuda");  // the moments of `before` stay on the host
  backward(sum(net(to_device(numbers({5, 6}), "cuda"))));
  const std::string message = message_of<DeviceError>([&] { before.step(); });
  EXPECT_TRUE(has(message, "[adamw]") && has(message, "on cpu")) << message;
}

TEST_F(EagerDeviceTest, WritesInPlace) {
  const auto program = [](Tensor x) {
    const NoGrad no_grad;
    Tensor row = x[1];
    copy_(row, x[0] * 3);
    add_(x, scalar(0.5));
    return x;
  };
  EXPECT_TRUE(bit_equal(program(to_device(numbers({3, 7}), "cuda")), program(numbers({3, 7}))));
}

TEST_F(EagerDeviceTest, RunsOpsWithoutAKernelOnTheHost) {
  gpu_.missing = {"tanh"};
  const Tensor x = numbers({6, 2});
  ::testing::internal::CaptureStderr();
  const Tensor y = tanh(tanh(to_device(x, "cuda")));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(device_name(y), "cuda");
  EXPECT_TRUE(bit_equal(y, tanh(tanh(x))));
  EXPECT_EQ(said, "tapedeck: tanh has no kernel on cuda; it runs on the host, between two copies\n");
}

TEST_F(EagerDeviceTest, MakesTensorsOnTheDeviceOfTheThread) {
  manual_seed(5);
  const Tensor host = normal({4, 4});
  manual_seed(5);
  {
    const OnDevice here("cuda");
    const Tensor there = normal({4, 4});
    EXPECT_EQ(device_name(there), "cuda");
    EXPECT_EQ(device_name(zeros({2})), "cuda");
    EXPECT_TRUE(bit_equal(there, host));
  }
  EXPECT_EQ(device_name(zeros({2})), "cpu");
  message_of<UsageError>([] { OnDevice("tpu"); });
}

TEST_F(EagerDeviceTest, ThrowsAFaultAtTheNextRead) {
  const Tensor table = to_device(numbers({4, 2}), "cuda");
  const Tensor indices = to_device(from_vector(std::vector<std::int32_t>(20, 9), {20}), "cuda");
  const Tensor rows = embedding(table, indices);
  const Tensor later = relu(rows);
  const std::string message = message_of<ExecutionError>([&] { synchronize("cuda"); });
  EXPECT_TRUE(has(message, "[embedding] index out of range (9)") && has(message, "eager_device_test.cpp:")) << message;
  EXPECT_EQ(table.to_vector<float>(), numbers({4, 2}).to_vector<float>());
}

TEST_F(EagerDeviceTest, CountsMemoryAndSaysWhenItIsFull) {
  FakeDevice small("cuda", 4096);
  const ScopedEagerDevice scope("cuda", small);
  {
    const Tensor x = to_device(numbers({256}), "cuda");
    EXPECT_EQ(device_memory_stats("cuda").bytes_in_use, 1024);
    const std::string message = message_of<ExecutionError>([&] { concat({x, x, x, x}, 0); });
    EXPECT_TRUE(has(message, "cuda has not 4096 bytes of memory left; tensors there hold 1024 bytes")) << message;
  }
  EXPECT_EQ(device_memory_stats("cuda").bytes_in_use, 0);
  EXPECT_EQ(device_memory_stats("cuda").peak_bytes, 1024);
  synchronize("cuda");
  EXPECT_EQ(small.blocks(), 0u);
}

// ---- training ----

// Three steps of training. Gives the parameters at the end.
std::vector<Tensor> train(const char* device) {
  manual_seed(11);
  Net net;
  net.to(device);
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  const Tensor x = to_device(numbers({5, 6}), device);
  const Tensor labels = to_device(from_vector(std::vector<std::int32_t>{0, 2, 1, 1, 0}, {5}), device);
  for (int step = 0; step < 3; ++step) {
    backward(mean(cross_entropy(net(x), labels)));
    optimizer.step();
    optimizer.zero_grad();
  }
  return net.parameters();
}

TEST_F(EagerDeviceTest, TrainsAsTheHostDoes) {
  const std::vector<Tensor> host = train("cpu"), there = train("cuda");
  ASSERT_EQ(host.size(), there.size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    EXPECT_EQ(device_name(there[i]), "cuda");
    EXPECT_TRUE(bit_equal(host[i], there[i])) << host[i].name().view();
  }
  EXPECT_GT(gpu_.launches, 50);
}

TEST_F(EagerDeviceTest, MovesAModuleAndKeepsItsHandles) {
  Net net;
  const std::vector<Tensor> handles = net.parameters();
  const std::vector<float> before = handles[0].to_vector<float>();
  backward(sum(net(numbers({5, 6}))));
  net.to("cuda");
  EXPECT_EQ(device_name(handles[0]), "cuda");
  EXPECT_EQ(device_name(handles[0].grad()), "cuda");
  EXPECT_EQ(handles[0].to_vector<float>(), before);
  net.to("cpu");
  EXPECT_EQ(device_name(handles[0]), "cpu");
  EXPECT_EQ(handles[0].to_vector<float>(), before);
}

}  // namespace
}  // namespace tapedeck
