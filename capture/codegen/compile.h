// Compiles generated sources at run time with NVRTC, which needs no GPU.
#pragma once

#include <tapedeck/capture/codegen/kernel_cache.h>

#include <string>
#include <vector>

namespace tapedeck::codegen {

// The options of a compilation for devices of compute capability sm (90 for 9.0). Contraction is off, so that the kernels have
// the bits of the CPU kernels; TAPEDECK_FMAD=1 turns it on.
std::vector<std::string> compile_options(int sm);

struct CompiledSource {
  std::string image;  // a cubin; PTX, with a NUL at its end, for a device that is newer than NVRTC
  bool from_cache = false;
};

// Throws DeviceError if NVRTC is not installed, or with NVRTC's log if the source does not compile. Thread safe.
CompiledSource compile_source(const std::string& source, int sm, const KernelCache& cache);

}  // namespace tapedeck::codegen
