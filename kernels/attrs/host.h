// Attributes of ops that call the host.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct HostAttrs {       // on_host
  Name name;             // what its user calls it
  bool chained = false;  // the last operand is the token of the call before
  std::int64_t function =
      -1;  // which function of this process. No field: text and files know none, and no result depends on the number
  ATTR_FIELDS(ATTR_FIELD(HostAttrs, name), ATTR_FIELD(HostAttrs, chained))
};

}  // namespace TAPEDECK_API
