// Helpers that convolution and pooling share: lists with one number for each spatial dimension, and the number of windows
// that fit.
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

inline constexpr std::int64_t kMaxWindowStep = 1 << 20;  // the largest stride, dilation or padding: products cannot overflow

// How far a window can move: the number of elements with padding (`room`) minus the extent of the window. -1 if the window
// does not fit.
inline std::int64_t window_room(std::int64_t room, std::int64_t window, std::int64_t dilation) {
  return window - 1 > (room - 1) / dilation || room < 1 ? -1 : room - dilation * (window - 1) - 1;
}

// Calls f.fail unless `list` has one number or `dims` numbers (with `twice`, also 2 * dims), each in [low, kMaxWindowStep].
void check_spatial(const Infer& f, const char* name, const Ints& list, int dims, std::int64_t low, bool twice = false);

// Repeats a list of one number `dims` times. A list of any other length is returned unchanged; inference refuses a wrong
// length.
Ints for_each_dimension(const Ints& list, int dims);

}  // namespace tapedeck
