// Elementwise kernels on f16 and bf16 operands, tile by tile.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels::cpu {

// Runs call.f32_kernel, which is elementwise and has one result, as run_in_f32 (half.h) does and with the same bits. The f32
// copies are those of one tile, on the stack of the running thread: the call needs no workspace, and operands and results go
// through memory once. REQUIRES: what run_tiles (tiles.h) requires of the views.
TAPEDECK_API void run_elementwise_in_f32(const KernelCall& call);

}  // namespace tapedeck::kernels::cpu
