// Attributes of pooling ops other than the maximum pool itself: gradients by index, averages, adaptive windows.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// The gradient of a maximum pool by the indices of the maxima. `size` holds the spatial sizes of the input, because the
// operands do not determine them.
struct PoolIndexGradAttrs {
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  Ints dilation = {1};
  Ints size;
  bool ceil_mode = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(PoolIndexGradAttrs, window)), never_size(ATTR_FIELD(PoolIndexGradAttrs, stride)),
              never_size(ATTR_FIELD(PoolIndexGradAttrs, padding)), never_size(ATTR_FIELD(PoolIndexGradAttrs, dilation)),
              size_list(ATTR_REQUIRED(PoolIndexGradAttrs, size)), ATTR_FIELD(PoolIndexGradAttrs, ceil_mode))
};

// avg_pool2d avg_pool3d. An empty `stride` means the window. With `ceil_mode` the size of the result is rounded up.
struct AvgPoolAttrs {
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  bool ceil_mode = false;
  bool count_include_pad = true;  // true: the divisor also counts the zeros of the padding
  ATTR_FIELDS(never_size(ATTR_FIELD(AvgPoolAttrs, window)), never_size(ATTR_FIELD(AvgPoolAttrs, stride)),
              never_size(ATTR_FIELD(AvgPoolAttrs, padding)), ATTR_FIELD(AvgPoolAttrs, ceil_mode),
              ATTR_FIELD(AvgPoolAttrs, count_include_pad))
};

// As AvgPoolAttrs, and `size`: the spatial sizes of the input, because the operands do not determine them.
struct AvgPoolGradAttrs {
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  Ints size;
  bool ceil_mode = false;
  bool count_include_pad = true;
  ATTR_FIELDS(never_size(ATTR_FIELD(AvgPoolGradAttrs, window)), never_size(ATTR_FIELD(AvgPoolGradAttrs, stride)),
              never_size(ATTR_FIELD(AvgPoolGradAttrs, padding)), size_list(ATTR_REQUIRED(AvgPoolGradAttrs, size)),
              ATTR_FIELD(AvgPoolGradAttrs, ceil_mode), ATTR_FIELD(AvgPoolGradAttrs, count_include_pad))
};

// `size` holds the spatial sizes of the result.
struct AdaptivePoolAttrs {
  Ints size;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(AdaptivePoolAttrs, size)))
};

}  // namespace TAPEDECK_API
