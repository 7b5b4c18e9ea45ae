// Copying between views of equal sizes and type, whatever their strides: what copy, concat and pad are made of.
#pragma once

#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels::cpu {

void copy_view(const View& from, const View& to);

// The part of `view` that starts at `start` in dimension `axis` and is `size` long there.
View window(View view, int axis, std::int64_t start, std::int64_t size);

}  // namespace tapedeck::kernels::cpu
