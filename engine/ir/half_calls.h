// The call of a kernel without an f16 or bf16 version on the CPU (runs_in_f32).
#pragma once

#include <tapedeck/engine/ir/op.h>

namespace tapedeck TAPEDECK_API {

// The kernel to call, with the op's own kernel as KernelCall::f32_kernel. An elementwise op with one result runs tile by tile
// and needs no workspace; any other op runs on f32 copies of whole operands (kernels/half.h), which its workspace holds.
Kernel f32_runner(const Op& op);

}  // namespace TAPEDECK_API
