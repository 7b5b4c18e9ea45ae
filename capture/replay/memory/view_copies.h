// Copies between tensors and views of any strides, on the CPU.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/kernel.h>

namespace tapedeck::replay {

// A dense copy of the elements. REQUIRES: `type` is that of the view.
Tensor copy_of_view(const View& from, const Type& type);
// REQUIRES: the tensor is dense, and of the dtype and the sizes of the view.
void copy_to_view(const Tensor& from, const View& to);

}  // namespace tapedeck::replay
