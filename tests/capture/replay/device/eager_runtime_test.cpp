// Eager code over a device's runtime: the fake runtime (fake_runtime.h) has a stream whose work waits, and memory of its own.
#include <tapedeck/engine/eager/cuda_device.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

class EagerRuntime : public ::testing::Test {
 protected:
  void TearDown() override {
    device_->synchronize();
    for (const std::string& problem : fake_->problems()) ADD_FAILURE() << problem;
  }
  std::shared_ptr<test::FakeRuntime> fake_ = std::make_shared<test::FakeRuntime>();
  std::unique_ptr<EagerDevice> device_ = make_runtime_device("cuda", fake_);
  ScopedEagerDevice scope_{"cuda", *device_};
};

struct Net : Module {
  Linear one{*this, "one", 12, 4};
};

std::vector<Tensor> train(const char* device) {
  manual_seed(3);
  Net net;
  net.to(device);
  Sgd optimizer(net.parameters(), {.lr = 0.1});
  const Tensor x = to_device(full({7, 12}, 0.25), device);
  for (int step = 0; step < 5; ++step) {
    backward(mean(square(net.one(x))));
    optimizer.step();
    optimizer.zero_grad();
  }
  return net.parameters();
}

TEST_F(EagerRuntime, TrainsAsTheHostDoes) {
  const std::vector<Tensor> host = train("cpu"), there = train("cuda");
  for (std::size_t i = 0; i < host.size(); ++i) EXPECT_TRUE(bit_equal(host[i], there[i])) << i;
}

TEST_F(EagerRuntime, MoreOpsThanPlacesForFaultsRunInOrder) {
  Tensor x = to_device(full({3}, 0.0), "cuda");
  const Tensor one = to_device(full({3}, 1.0), "cuda");
  for (int i = 0; i < 5000; ++i) x = add(x, one);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{5000, 5000, 5000}));
}

TEST_F(EagerRuntime, AFaultNamesItsOpAndIsThrownOnce) {
  const Tensor table = to_device(full({4, 2}, 1.0), "cuda");
  const Tensor index = to_device(full({20}, 9.0, DType::i32), "cuda");
  const Tensor rows = embedding(table, index), sums = sum(rows);
  const std::string message = testing::message_of<ExecutionError>([&] { sums.item(); });
  EXPECT_NE(message.find("[embedding] index out of range (9)"), std::string::npos) << message;
  EXPECT_NE(message.find("eager_runtime_test.cpp:"), std::string::npos) << message;
  EXPECT_EQ(sum(table).item(), 8);
}

}  // namespace
}  // namespace tapedeck
