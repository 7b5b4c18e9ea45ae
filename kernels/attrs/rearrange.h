// Attributes of flip, roll, tril and triu, and of pads that repeat what they find.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct FlipAttrs {  // axes are normalised, ascending
  Ints axes;
  ATTR_FIELDS(ATTR_REQUIRED(FlipAttrs, axes))
};

struct RollAttrs {  // axes are normalised, ascending; 0 <= shifts[i] < size of axes[i]
  Ints shifts;
  Ints axes;
  ATTR_FIELDS(ATTR_REQUIRED(RollAttrs, shifts), ATTR_REQUIRED(RollAttrs, axes))
};

struct TriangleAttrs {  // tril triu: the diagonal that is the last to be kept, counted from the main one upwards
  std::int64_t diagonal = 0;
  ATTR_FIELDS(ATTR_FIELD(TriangleAttrs, diagonal))
};

struct PadModeAttrs {  // mode is "reflect", "replicate" or "circular"
  Ints before;
  Ints after;
  Name mode;
  ATTR_FIELDS(ATTR_REQUIRED(PadModeAttrs, before), ATTR_REQUIRED(PadModeAttrs, after), ATTR_REQUIRED(PadModeAttrs, mode))
};

struct PadConstantAttrs {
  Ints before;
  Ints after;
  double value = 0;
  ATTR_FIELDS(ATTR_REQUIRED(PadConstantAttrs, before), ATTR_REQUIRED(PadConstantAttrs, after),
              ATTR_REQUIRED(PadConstantAttrs, value))
};

}  // namespace TAPEDECK_API
