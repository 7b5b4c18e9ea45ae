// Checks and conversion of axes for the .cpp files of op families. Authors may give negative axes, which count from the end,
// or no axes, which means all. Attributes hold axes in ascending order, counted from 0.
#pragma once

#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

#include <type_traits>

namespace tapedeck {

// Both functions convert the author's axes to the form of attributes. They throw TypeError if x is undefined. An axis outside
// of x is passed on; inference refuses it. A 0-d tensor has the axes 0 and -1, as in PyTorch: normal_axes() leaves them out,
// and functions along one axis call on_line().
Ints normal_axes(const char* op, const Arg& x, const Ints& axes);
std::int64_t normal_axis(const char* op, const Arg& x, std::int64_t axis);

// Whether x is 0-d and the axis is 0 or -1.
bool is_point(const Arg& x, std::int64_t axis);

// Calls f with the 0-d tensor x as a line of one element, and gives its results the shape of x.
template <class F>
auto on_line(const Arg& x, F&& f) {
  const Tensor line = reshape(x, {1});
  const auto point = [](const Tensor& t) { return t.rank() == 0 ? t : reshape(t, {}); };
  auto made = f(Arg(line, x.site().file, x.site().line));
  if constexpr (std::is_same_v<decltype(made), Tensor>)
    return point(made);
  else
    return decltype(made){point(made.first), point(made.second)};
}

// The shape of input 0 after a reduction over the axes. Calls f.fail if an axis is wrong.
Shape infer_reduced_shape(const Infer& f, const Ints& axes, bool keepdims);

// Calls f.fail unless the axis exists in input 0.
void infer_require_axis(const Infer& f, std::int64_t axis);

}  // namespace tapedeck
