// Attributes of copies between devices.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// to_device: devices are named "cpu", "cpu:1", "cuda", ...
struct ToDeviceAttrs {
  Name device = "cpu";
  Name from = "cpu";  // the device of the operand: the gradient is copied back to it
  ATTR_FIELDS(ATTR_REQUIRED(ToDeviceAttrs, device), ATTR_FIELD(ToDeviceAttrs, from))
};

}  // namespace TAPEDECK_API
