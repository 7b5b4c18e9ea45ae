// Attributes of the dynamic op, whose region finds sizes of tensors while it runs.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// `follows` is a list "a.shape.0=v@1, ...". This example says: in the node that makes %a, element 0 of the attribute `shape` is
// the size of axis 1 of %v.
struct DynamicAttrs {
  Name follows;
  ATTR_FIELDS(ATTR_FIELD(DynamicAttrs, follows))
};

}  // namespace TAPEDECK_API
