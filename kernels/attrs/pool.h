// Attributes of the pools that attrs.h does not hold: gradients by index, averages, adaptive windows.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct PoolIndexGradAttrs {  // the gradient of a maximum pool by its index must be told the input's spatial sizes
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  Ints dilation = {1};
  Ints size;
  bool ceil_mode = false;
  ATTR_FIELDS(ATTR_FIELD(PoolIndexGradAttrs, window), ATTR_FIELD(PoolIndexGradAttrs, stride),
              ATTR_FIELD(PoolIndexGradAttrs, padding), ATTR_FIELD(PoolIndexGradAttrs, dilation),
              ATTR_REQUIRED(PoolIndexGradAttrs, size), ATTR_FIELD(PoolIndexGradAttrs, ceil_mode))
};

struct AvgPoolAttrs {
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  bool ceil_mode = false;
  bool count_include_pad = true;  // the divisor counts the zeros of the padding
  ATTR_FIELDS(ATTR_FIELD(AvgPoolAttrs, window), ATTR_FIELD(AvgPoolAttrs, stride), ATTR_FIELD(AvgPoolAttrs, padding),
              ATTR_FIELD(AvgPoolAttrs, ceil_mode), ATTR_FIELD(AvgPoolAttrs, count_include_pad))
};

struct AvgPoolGradAttrs {  // must be told the input's spatial sizes
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  Ints size;
  bool ceil_mode = false;
  bool count_include_pad = true;
  ATTR_FIELDS(ATTR_FIELD(AvgPoolGradAttrs, window), ATTR_FIELD(AvgPoolGradAttrs, stride), ATTR_FIELD(AvgPoolGradAttrs, padding),
              ATTR_REQUIRED(AvgPoolGradAttrs, size), ATTR_FIELD(AvgPoolGradAttrs, ceil_mode),
              ATTR_FIELD(AvgPoolGradAttrs, count_include_pad))
};

struct AdaptivePoolAttrs {  // the spatial sizes of the result
  Ints size;
  ATTR_FIELDS(ATTR_REQUIRED(AdaptivePoolAttrs, size))
};

}  // namespace TAPEDECK_API
