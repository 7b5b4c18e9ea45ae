// Attributes of on_host, the op that calls a function of the host program.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct HostAttrs {
  Name name;             // the name that the user gave the call
  bool chained = false;  // true: the last operand is the token of the previous call, which keeps the calls in order
  // The number of the function in this process. Text and files do not hold this number, so it is not listed below.
  std::int64_t function = -1;
  ATTR_FIELDS(ATTR_FIELD(HostAttrs, name), ATTR_FIELD(HostAttrs, chained))
};

}  // namespace TAPEDECK_API
