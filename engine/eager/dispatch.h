// Dispatch: infer, allocate, run the kernel, record. What every op function calls; authors of ops and the replay oracle use it
// too.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <initializer_list>
#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Runs a single-output op on tensors of any layout. Throws TypeError "[op] ... (file:line)" before anything is recorded,
// ExecutionError if the kernel reports a fault. Broadcasting of operands is the engine's work; promotion is the caller's (see
// promoted()).
Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const void* attrs, Site site);

// Any number of outputs. `declared` gives the output types of kDeclaredTypes ops (opaque), and is empty otherwise.
std::vector<Tensor> apply_all(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site,
                              std::span<const Type> declared = {});

// Runs an op in place: each output i that the op pairs with an input is written over that tensor's bytes, bumps its version,
// and from now on the tensor is the new value. Recorded as a pure node. Throws GradientError for a leaf that requires a
// gradient outside no_grad, TypeError if the op has no in-place rule.
void apply_in_place(const Op& op, std::span<const Tensor> inputs, const void* attrs, Site site);

// Two operands of one dtype: numbers take the tensor's dtype, tensors of different dtypes are cast to promote(a, b).
bool same_dtype(const Arg& a, const Arg& b);  // both tensors, defined, of one dtype: nothing to promote
std::pair<Tensor, Tensor> promoted(const char* op, const Arg& a, const Arg& b);

}  // namespace TAPEDECK_API
