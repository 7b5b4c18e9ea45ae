// What convolution and pooling share: lists of one number for each spatial dimension, and how many windows fit.
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

inline constexpr std::int64_t kMaxWindowStep = 1 << 20;  // of strides, dilations and paddings, so that products cannot overflow

// The extent of a window over `size` elements that are `room` with padding; -1 if the window does not fit.
inline std::int64_t window_room(std::int64_t room, std::int64_t window, std::int64_t dilation) {
  return window - 1 > (room - 1) / dilation || room < 1 ? -1 : room - dilation * (window - 1) - 1;
}

// Fails unless `list` holds one number or `dims` (or, for padding, twice as many), each in [low, kMaxWindowStep].
void check_spatial(const Infer& f, const char* name, const Ints& list, int dims, std::int64_t low, bool twice = false);

// The same list with one number for each dimension; what has another length stays, and inference complains.
Ints for_each_dimension(const Ints& list, int dims);

}  // namespace tapedeck
