// The call of an op: infer the types, allocate, run the kernel, record. Every function of an op calls apply(). Authors of ops
// and the interpreter call it too.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <initializer_list>
#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Runs an op with one output. Operands may have any strides; elementwise ops broadcast them. The caller must give operands of
// one dtype (see promoted()). Throws TypeError "[op] ... (file:line)" before anything is recorded, and ExecutionError if the
// kernel reports a fault.
Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const void* attrs, Site site);

// Runs an op with any number of outputs. `declared` has the output types of a kDeclaredTypes op (opaque), and is empty for
// other ops.
std::vector<Tensor> apply_all(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site,
                              std::span<const Type> declared = {});

// Runs an op in place. Each output that the op pairs with an input is written over the bytes of that input. The version of
// the bytes goes up, and the tensor then stands for the new value. Where the tape records the call, it records a node that
// does not write in place. Throws GradientError for a leaf that requires a gradient and for a view of one, except under NoGrad,
// and TypeError if the op has no in-place rule.
void apply_in_place(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site);

// Gives two operands one dtype: a number takes the dtype of the tensor, and tensors of different dtypes are cast to
// promote(a, b).
bool same_dtype(const Arg& a, const Arg& b);  // whether both are defined tensors of one dtype
std::pair<Tensor, Tensor> promoted(const char* op, const Arg& a, const Arg& b);
// The number as a 0-d tensor. Throws TypeError, with the place of the call, if it does not fit the dtype.
Tensor scalar_of(const char* op, const Arg& number, DType dtype);

}  // namespace TAPEDECK_API
