// The norm and the clipping of many gradients at once. No value is read on the host, so all of it works inside a capture.
#pragma once

#include <tapedeck/engine/eager/tensor.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

// The 2-norm of all gradients together as one vector: f32[], or f64[] if a gradient is f64. Parameters without a gradient are
// left out.
Tensor grad_norm(const std::vector<Tensor>& parameters, Site site = {__builtin_FILE(), __builtin_LINE()});

// Scales the gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm before scaling. Every parameter gets a new
// gradient tensor, so two parameters that shared one are not scaled twice.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       Site site = {__builtin_FILE(), __builtin_LINE()});

// Limits every element of the gradients to [-limit, limit].
void clip_grad_value_(const std::vector<Tensor>& parameters, double limit, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
