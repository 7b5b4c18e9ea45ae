// The layout of the f32 copies of half-precision operands, for kernels without an f16 or bf16 version (half.h).
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels {

struct F32Copy {
  View view;
  std::int64_t elements;  // that lie in memory; 4 bytes each
};

// The copy of a half-precision view, at `data`. It is dense, but a dimension of stride 0 keeps its stride 0.
inline F32Copy f32_copy(const View& half, void* data) {
  F32Copy copy{half, 1};
  copy.view.dtype = DType::f32;
  copy.view.data = data;
  for (int d = half.rank - 1; d >= 0; --d) {
    const bool repeats = half.strides[d] == 0;
    copy.view.strides[d] = repeats ? 0 : copy.elements;
    if (!repeats) copy.elements *= half.sizes[d];
  }
  if (half.numel() == 0) copy.elements = 0;
  return copy;
}

// The view with size 1 in every dimension of stride 0, so that a repeated element is converted once.
inline View without_repeats(const View& view) {
  View once = view;
  for (int d = 0; d < view.rank; ++d)
    if (view.strides[d] == 0 && view.sizes[d] > 1) once.sizes[d] = 1;
  return once;
}

}  // namespace tapedeck::kernels
