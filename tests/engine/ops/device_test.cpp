// Tests that a copy between devices is refused where the device does not exist, and recorded where there is no data to copy.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using testing::message_of;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ToDevice, RefusesToCopyToAGpuThatEagerCodeDoesNotHave) {
  const Tensor x = from_vector(std::vector<float>{1, 2}, {2});
  for (const char* device : {"cuda", "cuda:1"}) {
    const std::string message = message_of<DeviceError>([&] { to_device(x, device); });
    EXPECT_TRUE(has(message, "[to_device] the device '" + std::string(device) + "' is not available: ")) << message;
    EXPECT_TRUE(has(message, "device_test.cpp:")) << message;
    message_of<DeviceError>([&] { to_device(x, "cpu", device); });
  }
  for (const std::string name : {"cudal", "tpu", "", "cpu:", "cuda:", "cpu:12345", "cuda:-1", "cuda:x", "cpu:1:2", "cpu "})
    for (const bool to : {true, false}) {
      const std::string message = message_of<TypeError>([&] { to ? to_device(x, name) : to_device(x, "cpu", name); });
      EXPECT_TRUE(has(message, "[to_device] '" + name + "' is no device: cpu, cpu:1, cuda")) << message;
    }
  message_of<TypeError>([] { to_device(Tensor(), "cpu"); });
}

TEST(ToDevice, CopiesBetweenDevicesOfTheHost) {
  const Tensor x = from_vector(std::vector<float>{1, 2}, {2});
  EXPECT_TRUE(bit_equal(to_device(to_device(x, "cpu:1"), "cpu", "cpu:1"), x));
}

TEST(ToDevice, MovesTensorsWithoutDataAnywhere) {
  const Type type{DType::f32, {2, 3}};
  EXPECT_EQ(to_device(abstract_tensor(type), "cuda").type(), type);
  const AbstractMode abstract;
  EXPECT_EQ(to_device(zeros({2, 3}), "cuda:1", "cuda").type(), type);
}

}  // namespace
}  // namespace tapedeck
