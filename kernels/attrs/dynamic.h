// Attributes of regions whose sizes are found while they run.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct DynamicAttrs {  // dynamic: "a.shape.0=v@1, ...": in the node that makes %a, element 0 of `shape` is the size of axis 1
                       // of %v
  Name follows;
  ATTR_FIELDS(ATTR_FIELD(DynamicAttrs, follows))
};

}  // namespace TAPEDECK_API
