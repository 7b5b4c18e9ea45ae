// Captures record tensors of the host: ops on another device are refused, at the user's call.
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/device/fake_device.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

TEST(DeviceCapture, IsRefused) {
  testing::FakeDevice gpu;
  const ScopedEagerDevice scope("cuda", gpu);
  const Tensor x = from_vector(std::vector<float>{1, 2, 3}, {3}), y = to_device(x, "cuda");
  Capture capture("step");
  for (const auto& call : {std::function<void()>([&] { relu(y); }), std::function<void()>([&] { to_device(x, "cuda"); })}) {
    const std::string message = testing::message_of<DeviceError>(call);
    EXPECT_NE(message.find("a capture records tensors of the host"), std::string::npos) << message;
    EXPECT_NE(message.find("device_capture_test.cpp:"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tapedeck
