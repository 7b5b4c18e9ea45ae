// Eager code over a device's runtime: the fake runtime (fake_runtime.h) has a stream and memory of its own. Each op waits
// (TAPEDECK_SYNC), because the fake reads the attributes of an op when its stream runs it, and those of an eager call are gone
// by then.
#include <tapedeck/engine/eager/cuda_device.h>
#include <tapedeck/engine/eager/settings.h>
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
  std::unique_ptr<EagerDevice> device_ = test::waiting_eager_device(fake_);
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

// Modules whose code makes tensors of its own, as a first state or as the gradient of a result that nobody reads.
struct ModulesNet : Module {
  TransformerBlock block{*this, "block", 12, TransformerOptions{.heads = 3, .causal = true}};
  Gru gru{*this, "gru", 12, 6};
  Lstm lstm{*this, "lstm", 6, 5};
  BatchNorm norm{*this, "norm", 4};
  Embedding rows{*this, "rows", 9, 5};
  Tensor operator()(const Tensor& x, const Tensor& index) {
    const Tensor y = lstm(gru(block(x)).y).y;
    const Tensor picked = gather(y, index, 0);
    return mean(square(norm(reshape(cumsum(picked, 0), {-1, 4})))) + mean(rows(reshape(index, {-1})));
  }
};

std::vector<Tensor> train_modules(const char* device) {
  manual_seed(4);
  ModulesNet net;
  net.to(device);
  AdamW optimizer(net.parameters(), {.lr = 0.1});
  const Tensor x = to_device(normal({4, 4, 12}), device);
  std::vector<std::int32_t> numbers(80);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i * 7 % 4);
  const Tensor index = to_device(from_vector(numbers, {4, 4, 5}), device);
  for (int step = 0; step < 3; ++step) {
    backward(net(x, index));
    optimizer.step();
    optimizer.zero_grad();
  }
  return net.parameters();
}

TEST_F(EagerRuntime, TrainsModulesThatMakeTensorsOfTheirOwn) {
  const std::vector<Tensor> host = train_modules("cpu"), there = train_modules("cuda");
  for (std::size_t i = 0; i < host.size(); ++i) EXPECT_TRUE(bit_equal(host[i], there[i])) << host[i].name().view();
}

TEST(EagerRuntimeQueue, MoreOpsThanPlacesForFaultsRunInOrder) {
  const auto fake = std::make_shared<test::FakeRuntime>();
  const std::unique_ptr<EagerDevice> device = make_runtime_device("cuda", fake);
  const ScopedEagerDevice scope("cuda", *device);
  Tensor x = to_device(full({3}, 0.0), "cuda");
  const Tensor one = to_device(full({3}, 1.0), "cuda");
  for (int i = 0; i < 5000; ++i) x = add(x, one);  // `add` has no attributes
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{5000, 5000, 5000}));
  for (const std::string& problem : fake->problems()) ADD_FAILURE() << problem;
}

TEST_F(EagerRuntime, AFaultNamesItsOpAndIsThrownOnce) {
  const Tensor table = to_device(full({4, 2}, 1.0), "cuda");
  const Tensor index = to_device(full({20}, 9.0, DType::i32), "cuda");
  const std::string message = testing::message_of<ExecutionError>([&] { embedding(table, index); });
  EXPECT_NE(message.find("[embedding] index out of range (9)"), std::string::npos) << message;
  EXPECT_NE(message.find("eager_runtime_test.cpp:"), std::string::npos) << message;
  EXPECT_EQ(sum(table).item(), 8);
}

}  // namespace
}  // namespace tapedeck
