// Attributes of flip, roll, tril, triu, and of paddings that repeat elements of the input.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// flip: the axes are normalised and ascending.
struct FlipAttrs {
  Ints axes;
  ATTR_FIELDS(never_size(ATTR_REQUIRED(FlipAttrs, axes)))
};

// roll: the axes are normalised and ascending, and 0 <= shifts[i] < size of axes[i].
struct RollAttrs {
  Ints shifts;
  Ints axes;
  ATTR_FIELDS(ATTR_REQUIRED(RollAttrs, shifts), never_size(ATTR_REQUIRED(RollAttrs, axes)))
};

// tril triu: the last diagonal that is kept. 0 is the main diagonal; positive diagonals lie above it.
struct TriangleAttrs {
  std::int64_t diagonal = 0;
  ATTR_FIELDS(never_size(ATTR_FIELD(TriangleAttrs, diagonal)))
};

// pad with a mode: "reflect", "replicate" or "circular".
struct PadModeAttrs {
  Ints before;
  Ints after;
  Name mode;
  ATTR_FIELDS(ATTR_REQUIRED(PadModeAttrs, before), ATTR_REQUIRED(PadModeAttrs, after), ATTR_REQUIRED(PadModeAttrs, mode))
};

// pad with a constant: before[i] times `value` in front of dimension i, and after[i] times behind it.
struct PadConstantAttrs {
  Ints before;
  Ints after;
  double value = 0;
  ATTR_FIELDS(ATTR_REQUIRED(PadConstantAttrs, before), ATTR_REQUIRED(PadConstantAttrs, after),
              may_scale(ATTR_REQUIRED(PadConstantAttrs, value)))
};

}  // namespace TAPEDECK_API
