// Attributes of copies between devices.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct ToDeviceAttrs {  // "cpu", "cpu:1", "cuda"
  Name device = "cpu";
  Name from = "cpu";  // where the operand is: the gradient goes back there
  ATTR_FIELDS(ATTR_REQUIRED(ToDeviceAttrs, device), ATTR_FIELD(ToDeviceAttrs, from))
};

}  // namespace TAPEDECK_API
