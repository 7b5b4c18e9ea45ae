// Gradients of many parameters at once. Nothing here reads a value on the host, so all of it works inside a capture.
#pragma once

#include <tapedeck/engine/eager/tensor.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

// The length of all gradients as one vector, f32[] (f64[] if a gradient is f64). Parameters without a gradient count for
// nothing.
Tensor grad_norm(const std::vector<Tensor>& parameters, Site site = {__builtin_FILE(), __builtin_LINE()});

// Scales the gradients by min(1, max_norm / (norm + 1e-6)) and returns their norm before. Every parameter gets a gradient of
// its own, so that two that shared a buffer are not scaled twice.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       Site site = {__builtin_FILE(), __builtin_LINE()});

// Limits every element to [-limit, limit].
void clip_grad_value_(const std::vector<Tensor>& parameters, double limit, Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
