// The CPU kernels of convolutions in three dimensions, for tests that call them directly. kernels/cpu/kernels.h declares those
// in two.
#pragma once

#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels::cpu {

void conv3d(const KernelCall& call);
void conv3d_input_grad(const KernelCall& call);
void conv3d_weight_grad(const KernelCall& call);

}  // namespace tapedeck::kernels::cpu
