// Writing tensors in place. Every function returns the tensor it wrote.
//
// The write happens at once, bumps the version of the bytes, and is recorded as a pure node: from now on the tensor, its base,
// and (when they are next read) the base's other views are new values, so gradients flow through writes and through views. What
// backward had saved of the bytes before is stale; using it is a GradientError that names both places. A leaf that requires a
// gradient, or a view of one, can be written under NoGrad only; gradients then pass as if it had not been written.
//
// The result takes the tensor's dtype and shape: operands are cast and broadcast to it. Throws TypeError if they cannot be (a
// fraction into integers), or if the tensor shows one element at several places (broadcast_to). O(elements written).
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <span>

namespace tapedeck TAPEDECK_API {

const Tensor& add_(const Tensor& x, const Arg& y);
const Tensor& sub_(const Tensor& x, const Arg& y);
const Tensor& mul_(const Tensor& x, const Arg& y);
const Tensor& div_(const Tensor& x, const Arg& y);
const Tensor& copy_(const Tensor& x, const Arg& y);  // x = y
const Tensor& fill_(const Tensor& x, double value, Site site = {__builtin_FILE(), __builtin_LINE()});
const Tensor& zero_(const Tensor& x, Site site = {__builtin_FILE(), __builtin_LINE()});
const Tensor& masked_fill_(const Tensor& x, const Tensor& mask,
                           const Arg& value);  // x[mask] = value; mask: bool, broadcast to x
// x[starts:stops:steps] = value, as slice() reads it.
const Tensor& slice_assign_(const Tensor& x, const Ints& starts, const Ints& stops, const Arg& value);
const Tensor& slice_assign_(const Tensor& x, const Ints& starts, const Ints& stops, const Ints& steps, const Arg& value);
// Any op of one operand that can run in place: relu_ is apply_(ops::relu, x).
const Tensor& apply_(const Op& op, const Tensor& x, const void* attrs = nullptr,
                     Site site = {__builtin_FILE(), __builtin_LINE()});

// Writes the op's one result over `target`, whatever the operands are.
void apply_over(const Op& op, std::span<const Tensor> inputs, const void* attrs, const Tensor& target, Site site);

}  // namespace TAPEDECK_API
