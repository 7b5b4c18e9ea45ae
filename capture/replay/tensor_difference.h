// Where two tensors differ, and by how much: the first element that differs and the one that differs most.
//
//     got       [1, 2.5, 7]
//     expected  [1, 2,   3]      2 of 3 elements differ; first [1]: got 2.5, expected 2; worst [2]: got 7, expected 3
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

// Two elements are equal if |got - expected| <= absolute + relative * |expected|, or if both are NaN, or the same infinity.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  bool bits = false;  // instead, equal elements have equal bits: -0 is not 0, and one NaN is not another
};

struct ElementDifference {
  std::string index;          // "[0,3]"; "[]" in a tensor of rank 0
  std::string got, expected;  // as text that reads back as the same numbers
  double absolute = 0;        // |got - expected|; infinite where one of them is not finite
  double relative = 0;        // of |expected|; infinite where that is 0
};

struct TensorDifference {
  std::string types;  // "got f32[2], expected f32[3]" if the types exclude a comparison; then nothing else is filled in
  std::int64_t elements = 0, differing = 0;
  ElementDifference first, worst;  // in C order; of the elements that differ by as much, the first

  bool equal() const { return types.empty() && differing == 0; }
};

// Shapes must agree, and dtypes must be the same or both be of floats (with `bits`: the same). TypeError for a tensor without
// data. O(elements).
TensorDifference compare_tensors(const Tensor& got, const Tensor& expected, const Tolerance& tolerance = {});

// "2 of 3 elements differ; first [1]: got 2.5, expected 2 (absolute 0.5, relative 0.25); worst ..."
std::string to_text(const TensorDifference& difference);

}  // namespace TAPEDECK_API
