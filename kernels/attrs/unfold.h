// Attributes of unfold and fold, which slide a window {height, width} over padded images.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// unfold: every list holds the height first, then the width. `padding` applies on both sides.
struct UnfoldAttrs {
  Ints window;
  Ints stride = {1, 1};
  Ints padding = {0, 0};
  Ints dilation = {1, 1};
  ATTR_FIELDS(never_size(ATTR_REQUIRED(UnfoldAttrs, window)), never_size(ATTR_FIELD(UnfoldAttrs, stride)),
              never_size(ATTR_FIELD(UnfoldAttrs, padding)), never_size(ATTR_FIELD(UnfoldAttrs, dilation)))
};

// fold: `size` holds the height and width of the image.
struct FoldAttrs {
  Ints size;
  Ints window;
  Ints stride = {1, 1};
  Ints padding = {0, 0};
  Ints dilation = {1, 1};
  ATTR_FIELDS(size_list(ATTR_REQUIRED(FoldAttrs, size)), never_size(ATTR_REQUIRED(FoldAttrs, window)),
              never_size(ATTR_FIELD(FoldAttrs, stride)), never_size(ATTR_FIELD(FoldAttrs, padding)),
              never_size(ATTR_FIELD(FoldAttrs, dilation)))
};

// How many places the window has along dimension d (0 = height, 1 = width) of `size` elements; 0 if it does not fit.
template <class Attrs>
std::int64_t windows_along(const Attrs& a, int d, std::int64_t size) {
  const std::int64_t room = size + 2 * a.padding[d] - a.dilation[d] * (a.window[d] - 1) - 1;
  return room < 0 ? 0 : room / a.stride[d] + 1;
}

}  // namespace TAPEDECK_API
