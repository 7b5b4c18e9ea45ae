// Whether the gradient of a tensor is fresh: backward has written it since it was last used. A loop over parameters can tell by
// this which of them the last backward reached, for example to leave out an update with an old gradient.
//
//     backward(loss);        grad_is_fresh(w) is true for every leaf whose grad() was written or added to
//     optimizer.step();      it is false for every parameter that was updated
//     backward(other);       it is true only for the leaves that `other` depends on
//
// The mark belongs to the tensor, as grad() does: all handles share it, and it must not be read while another thread writes
// grad(). set_grad() with a tensor leaves the mark as it is, so clipping and unscaling keep a gradient fresh;
// set_grad(Tensor()), zero_grad() and Module::zero_grad() clear it. gradients() writes no grad() and no mark.
// Optimizer::step_if() counts the gradients as used whether or not its condition holds.
//
// A replay of a captured step leaves the marks that the function would have left, with one exception: marks that the function
// sets through the two functions below are not replayed, and a gradient that it sets by set_grad() counts as written.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

namespace tapedeck TAPEDECK_API {

// False if there is no gradient. Throws TypeError if the tensor is undefined. O(1), as the functions below.
bool grad_is_fresh(const Tensor& t);

// From now on the gradient counts as used. Optimizers do this for every parameter that they update. Does nothing if there is
// no gradient. Throws TypeError if the tensor is undefined.
void mark_grad_used(const Tensor& t);

// From now on the gradient counts as written by backward; for code that computes gradients itself and sets them with
// set_grad(). Throws UsageError if there is no gradient, and TypeError if the tensor is undefined.
void mark_grad_fresh(const Tensor& t, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
