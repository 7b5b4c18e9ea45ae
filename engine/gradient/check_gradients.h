// The gradients of a function compared with central differences of its results.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GradientCheckOptions {
  double step = 1e-6;                // what is added to an element, and subtracted from it, times max(1, |element|)
  double rtol = 1e-5, atol = 1e-7;   // an element agrees if |exact - numeric| <= atol + rtol * |numeric|
  std::int64_t most_elements = 256;  // of each input; of a larger one no more than so many, spread evenly
};

// An element of an input whose gradient does not agree.
struct GradientMismatch {
  std::size_t input = 0;
  std::vector<std::int64_t> index;  // of the element
  double exact = 0;                 // from backward
  double numeric = 0;               // from differences
};

struct GradientCheck {
  std::int64_t elements = 0;                 // that were checked
  std::vector<GradientMismatch> mismatches;  // by input and element
  double worst = 0;                          // the largest |exact - numeric| of all elements; NaN if one is NaN
  bool ok() const { return mismatches.empty(); }
  std::string to_string() const;  // one line if all agree; else the first ten mismatches, a line each
};

// Checks the gradient of sum(fn(inputs) * heads), where the heads are fixed numbers between 1 and 2, so that no part of a
// result is missed. Every floating input has to be f64, because differences of f32 are too coarse to tell; other inputs are
// passed on. The inputs themselves are not changed. fn is called twice for each element, with copies, and must give the same
// results for the same values: call manual_seed() in it if it draws. Throws TypeError for a floating input of another dtype and
// for results that are not f64, and what fn and gradients() throw. O(elements) calls of fn.
using GradientFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
GradientCheck check_gradients(const GradientFunction& fn, const std::vector<Tensor>& inputs,
                              const GradientCheckOptions& options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
