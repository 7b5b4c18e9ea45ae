// Writes into tensors in place. Every function returns the tensor that it wrote.
//
// The write happens at once, raises the version of the bytes, and is recorded as a pure node. After the write, the tensor and
// its base stand for new values, and so do other views of the base when they are next read. So gradients flow through writes
// and through views. Values that backward had saved from the old bytes are stale; using one is a GradientError that names
// both places. A leaf that requires a gradient, or a view of one, can be written under NoGrad only. Gradients then pass as if
// nothing had been written.
//
// The result keeps the dtype and shape of the tensor: operands are cast and broadcast to it. Throws TypeError if that is not
// possible (a fraction into integers), or if the tensor shows one element at several places (broadcast_to). O(elements
// written).
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <type_traits>

namespace tapedeck TAPEDECK_API {

const Tensor& add_(const Tensor& x, const Arg& y);
const Tensor& sub_(const Tensor& x, const Arg& y);
const Tensor& mul_(const Tensor& x, const Arg& y);
const Tensor& div_(const Tensor& x, const Arg& y);
const Tensor& copy_(const Tensor& x, const Arg& y);  // x = y
// x += y is add_(x, y), and so on: `x[0] += 1` writes into x. If x is a temporary that shares its bytes with no other tensor,
// as x[rows] for a tensor `rows`, the write would be lost, and is a TypeError.
void refuse_lost_write(const char* op, const Tensor& x, Site site);
#define TAPEDECK_COMPOUND(op, f)                                                      \
  inline const Tensor& operator op(const Tensor& x, const Arg& y) { return f(x, y); } \
  inline Tensor operator op(Tensor&& x, const Arg& y) {                               \
    refuse_lost_write(#op, x, y.site());                                              \
    return f(x, y);                                                                   \
  }
TAPEDECK_COMPOUND(+=, add_)
TAPEDECK_COMPOUND(-=, sub_)
TAPEDECK_COMPOUND(*=, mul_)
TAPEDECK_COMPOUND(/=, div_)
#undef TAPEDECK_COMPOUND
const Tensor& fill_(const Tensor& x, double value, Site site = {__builtin_FILE(), __builtin_LINE()});
template <class Value>
requires(std::is_integral_v<Value>&& std::is_signed_v<Value>) const Tensor& fill_(const Tensor& x, Value value,
                                                                                  Site site = {__builtin_FILE(),
                                                                                               __builtin_LINE()}) {
  return fill_(x, exact_double("full", value, site), site);
}
const Tensor& zero_(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
const Tensor& masked_fill_(const Tensor& x, const Tensor& mask,
                           const Arg& value);  // x[mask] = value; the mask is bool and is broadcast to x
// x[starts:stops:steps] = value, with the arguments of slice().
const Tensor& slice_assign_(const Tensor& x, const Ints& starts, const Ints& stops, const Arg& value);
const Tensor& slice_assign_(const Tensor& x, const Ints& starts, const Ints& stops, const Ints& steps, const Arg& value);
// Applies an op of one operand in place. For example, apply_(ops::relu, x) is relu_.
const Tensor& apply_(const Op& op, const Tensor& x, const void* attrs = nullptr,
                     Site site = {__builtin_FILE(), __builtin_LINE()});

// Writes the only result of the op over `target`. The operands may be any tensors.
void apply_over(const Op& op, std::span<const Tensor> inputs, const void* attrs, const Tensor& target, Site site);

}  // namespace TAPEDECK_API
