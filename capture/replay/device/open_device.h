// A device by its name: "cuda" is the first, "cuda:1" the second.
#pragma once

#include <tapedeck/kernels/cuda/device_runtime.h>
#include <tapedeck/kernels/export.h>

#include <memory>
#include <string>

namespace tapedeck TAPEDECK_API {

// Null for "cpu". Throws UsageError for a name that no device can have, and DeviceError with the reason if the device is not
// there.
std::shared_ptr<kernels::cuda::DeviceRuntime> open_device(const std::string& name);

// The kernels of the device, for questions about plans. Where the device is not there, they are those that every device has.
// REQUIRES: as open_device(); not "cpu".
const kernels::cuda::DeviceKernels& kernels_of_device(const std::string& name);

// For tests: "cuda" is this runtime until the object is destroyed. Not thread safe.
class ScopedDevice {
 public:
  explicit ScopedDevice(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime);
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;

 private:
  std::shared_ptr<kernels::cuda::DeviceRuntime> before_;
};

}  // namespace TAPEDECK_API
