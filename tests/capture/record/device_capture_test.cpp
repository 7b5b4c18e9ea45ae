// Captures of code whose tensors are on a device: the graph is that of the same code on the host.
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/device/fake_device.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

struct DeviceNet : Module {
  Linear one{*this, "one", 3, 5};
  Dropout drop{*this, "drop", 0.5};
};

Captured captured_on(const char* device) {
  manual_seed(4);
  DeviceNet net;
  net.to(device);
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  const Tensor x = to_device(full({2, 3}, 0.5), device), scale = to_device(full({2, 5}, 2.0), device);
  Capture capture("step");
  const Tensor loss = mean(net.drop(net.one(capture.input("x", x))) * scale);
  backward(loss);
  optimizer.step();
  capture.output("loss", loss);
  return capture.finish();
}

TEST(DeviceCapture, RecordsTheGraphOfTheHost) {
  testing::FakeDevice gpu;
  const ScopedEagerDevice scope("cuda", gpu);
  const Captured host = captured_on("cpu"), there = captured_on("cuda");
  EXPECT_EQ(print(there.graph), print(host.graph));
  ASSERT_EQ(there.graph.constants.size(), host.graph.constants.size());
  EXPECT_EQ(there.device, "cuda");
  EXPECT_EQ(there.operands_device, "cuda");
  EXPECT_EQ(host.device, "cpu");
  std::int32_t on_device = 0;
  for (std::size_t s = 0; s < there.state.size(); ++s) {
    on_device += device_name(there.state[s]) == "cuda";
    EXPECT_TRUE(bit_equal(to_device(there.state[s], "cpu"), host.state[s])) << there.state[s].name().view();
  }
  EXPECT_GT(on_device, 2);
}

TEST(DeviceCapture, RefusesCopiesBetweenDevices) {
  testing::FakeDevice gpu;
  const ScopedEagerDevice scope("cuda", gpu);
  const Tensor x = from_vector(std::vector<float>{1, 2, 3}, {3}), y = to_device(x, "cuda");
  Capture capture("step");
  for (const auto& call :
       {std::function<void()>([&] { to_device(y, "cpu"); }), std::function<void()>([&] { to_device(x, "cuda"); })}) {
    const std::string message = testing::message_of<DeviceError>(call);
    EXPECT_NE(message.find("a captured step runs on one device"), std::string::npos) << message;
    EXPECT_NE(message.find("device_capture_test.cpp:"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tapedeck
