// A GPU as a device of eager code (eager_device.h).
#pragma once

#include <tapedeck/engine/eager/eager_device.h>

#include <memory>

namespace tapedeck {

// Throws DeviceError if this process cannot use the GPU of this number.
std::unique_ptr<EagerDevice> make_cuda_device(int number);

}  // namespace tapedeck
