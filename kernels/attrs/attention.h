// Attributes of attention.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct AttentionAttrs {  // scores are scale q k^T; causal: query i sees keys 0 ... i
  double scale = 1;
  bool causal = false;
  ATTR_FIELDS(ATTR_REQUIRED(AttentionAttrs, scale), ATTR_FIELD(AttentionAttrs, causal))
};

}  // namespace TAPEDECK_API
