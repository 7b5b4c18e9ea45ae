// Copies between views. copy, concat and pad are built from these two functions.
#pragma once

#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels::cpu {

// Copies all elements. REQUIRES: equal sizes and equal types; any strides; `to` does not overlap `from`.
void copy_view(const View& from, const View& to);

// The window of `view` that begins at `start` along `axis` and has `size` elements there.
View window(View view, int axis, std::int64_t start, std::int64_t size);

}  // namespace tapedeck::kernels::cpu
