// Tensors as text for people, in the layout of NumPy, with dtype and shape at the end:
//
//     [[1.  2.5]
//      [3.  4. ]] f32[2,2]
//
// The rules are those of numpy.array2string with its default options:
// - All elements of a tensor are printed alike, as wide as the widest.
// - A floating number prints the fewest digits that tell it from the other numbers of its dtype, and at most `precision` digits
//   after the point. All numbers print with an exponent if the largest magnitude is 1e8 or more, the smallest that is not zero
//   is below 1e-4, or the two differ by a factor of more than 1000.
// - Integers are exact. Bools are `true` and `false`.
// - A tensor of more than `threshold` elements prints `edge_items` elements at both ends of every axis, and `...` between them.
//   Only the elements that appear are read, and only they decide on the format: O(elements shown).
// - A line that would become longer than `line_width` goes on in the next line.
//
// Two details differ from NumPy. Bools are as wide as the widest that appears, and numbers of bf16, which NumPy does not have,
// follow the rule for floating numbers.
//
// A tensor without data prints its type: "undefined" or "abstract f32[64,10]". A tensor with data cannot be printed inside a
// capture: the CaptureError names the place of the call. Several threads may print one tensor.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <iosfwd>
#include <string>

namespace tapedeck TAPEDECK_API {

// How a tensor prints. Numbers below 0 count as 0, and `edge_items` below 1 as 1.
struct TensorPrintOptions {
  int precision = 8;  // digits after the point, at most
  std::int64_t threshold = 1000;
  int edge_items = 3;
  int line_width = 75;
};

std::string to_string(const Tensor& x, const TensorPrintOptions& options = {},
                      Site site = {__builtin_FILE(), __builtin_LINE()});

// A tensor with the place where it is printed. It is made implicitly, and refers to the tensor.
struct PrintedTensor {
  PrintedTensor(const Tensor& x, Site at = {__builtin_FILE(), __builtin_LINE()}) : tensor(x), site(at) {}  // NOLINT
  const Tensor& tensor;
  Site site;
};
std::ostream& operator<<(std::ostream& out, const PrintedTensor& x);  // to_string() with the default options

}  // namespace TAPEDECK_API
