// Copies between tensors and views of any strides, on the CPU.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/kernel.h>

namespace tapedeck::replay {

// A dense copy of the elements. REQUIRES: `type` is that of the view.
Tensor copy_of_view(const View& from, const Type& type);
// The bytes from the first to the last element of a view in memory, and how many of them lie before the element that `data`
// names. None for a view without elements.
struct Reach {
  std::int64_t before = 0, bytes = 0;
};
Reach reach_of(const View& v);

// REQUIRES: the tensor is dense, and of the dtype and the sizes of the view.
void copy_to_view(const Tensor& from, const View& to);

}  // namespace tapedeck::replay
