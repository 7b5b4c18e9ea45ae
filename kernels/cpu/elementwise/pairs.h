// Two elementwise kernels in one pass: t = x * w and y = t + b become y = x * w + b, with t in a register.
#pragma once

#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels::cpu {

// A kernel that computes second(first(a, b), c) of the f32 operands a, b and c, or null if there is none for these two. Its
// bits are those of both kernels one after the other. It takes views of one dimension, each dense or of stride 0.
Kernel pair_kernel(Kernel first, Kernel second);

}  // namespace tapedeck::kernels::cpu
