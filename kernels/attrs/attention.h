// Attributes of the attention ops.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// The scores are scale * q k^T. With `causal`, query i sees only keys 0 ... i.
struct AttentionAttrs {
  double scale = 1;
  bool causal = false;
  ATTR_FIELDS(may_scale(ATTR_REQUIRED(AttentionAttrs, scale)), ATTR_FIELD(AttentionAttrs, causal))
};

}  // namespace TAPEDECK_API
