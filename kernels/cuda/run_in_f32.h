// Runs a kernel that has no f16 or bf16 version in f32, on operands that the device converts first: run_in_f32 of
// kernels/half.h, with the kernels of the device.
#pragma once

#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <functional>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// Converts the half-precision operands to f32 in the workspace, runs call.f32_kernel on them, and converts the results back.
// Starts one `cast` for each conversion on the stream of the call. REQUIRES: the workspace has the bytes that f32_workspace()
// says.
void run_in_f32(const KernelCall& call);

// The bytes of workspace for the conversions, and for the kernel itself: `wanted` says those of a call with f32 operands.
std::int64_t f32_workspace(const KernelCall& call, const std::function<std::int64_t(const KernelCall&)>& wanted);

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
