// Every CUDA kernel by name, for tests and benches that call kernels directly. The symbols are weak: a build without CUDA
// leaves the addresses null, so check the address before a call. The op registry has its own declarations
// (engine/ops/op_block.h).
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/cuda/pointwise.inl>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

#define TAPEDECK_WEAK_KERNEL(name, ...) [[gnu::weak]] void name(const KernelCall& call);
TAPEDECK_POINTWISE_KERNELS(TAPEDECK_WEAK_KERNEL)
TAPEDECK_WEAK_KERNEL(uniform)
TAPEDECK_WEAK_KERNEL(normal)
TAPEDECK_WEAK_KERNEL(dropout)
TAPEDECK_WEAK_KERNEL(rng_next)
#undef TAPEDECK_WEAK_KERNEL

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
