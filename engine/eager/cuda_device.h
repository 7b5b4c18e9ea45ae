// A GPU as a device of eager code (eager_device.h).
#pragma once

#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/kernels/cuda/device_runtime.h>

#include <memory>
#include <string>

namespace tapedeck TAPEDECK_API {

// Throws DeviceError if this process cannot use the GPU of this number.
std::unique_ptr<EagerDevice> make_cuda_device(int number);

// The device over any runtime: tests give a fake.
std::unique_ptr<EagerDevice> make_runtime_device(std::string name, std::shared_ptr<kernels::cuda::DeviceRuntime> runtime);

}  // namespace TAPEDECK_API
