// Checks and conversion of axes for the .cpp files of op families. Authors may give negative axes, which count from the end,
// or no axes, which means all. Attributes hold axes in ascending order, counted from 0.
#pragma once

#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

#include <span>
#include <utility>

namespace tapedeck {

// Both functions convert the author's axes to the form of attributes. They throw TypeError if x is undefined. An axis outside
// of x is passed on; inference refuses it. A 0-d tensor has the axes 0 and -1, as in PyTorch: normal_axes() leaves them out,
// and functions whose result has the shape of x, or that shape without the axis, use AlongAxis.
Ints normal_axes(const char* op, const Arg& x, const Ints& axes);
std::int64_t normal_axis(const char* op, const Arg& x, std::int64_t axis);

// The operand and the axis of a function along one axis. A 0-d operand is taken as a line of one element, and result() gives
// what was computed from the line the shape of the operand. Every other operand and every other result is passed on.
//     const AlongAxis along("softmax", x, axis);
//     const AxisAttrs attrs{along.axis()};
//     return along.result(apply(ops::softmax, {&along.operand()}, &attrs, x.site()));
// It refers to x and lives no longer. The constructor throws TypeError if x is undefined.
class AlongAxis {
 public:
  AlongAxis(const char* op, const Arg& x, std::int64_t axis);
  AlongAxis(const AlongAxis&) = delete;
  AlongAxis& operator=(const AlongAxis&) = delete;

  const Tensor& operand() const { return is_point_ ? line_ : x_.tensor(); }
  std::int64_t axis() const { return axis_; }  // counted from 0
  Tensor result(Tensor made) const;
  std::pair<Tensor, Tensor> results(std::span<const Tensor> both) const;  // two of them

 private:
  Arg x_;
  std::int64_t axis_;
  bool is_point_;
  Tensor line_;
};

// The shape of input 0 after a reduction over the axes. Calls f.fail if an axis is wrong.
Shape infer_reduced_shape(const Infer& f, const Ints& axes, bool keepdims);

// Calls f.fail unless the axis exists in input 0.
void infer_require_axis(const Infer& f, std::int64_t axis);

}  // namespace tapedeck
