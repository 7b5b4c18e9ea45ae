// Kernels that were compiled at run time: loading machine code, finding a kernel in it, launching it. The functions are a
// table, so that a test can put others in their place (library.h, ScopedFake); without CUDA every function returns one fixed
// reason.
//
// Functions return null on success, otherwise a text that lives for ever. Any thread may call them.
#pragma once

#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/kernels/export.h>

#include <cstddef>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

using Module = void*;        // cudaLibrary_t
using ModuleKernel = void*;  // cudaKernel_t; valid until its module is unloaded

struct ModuleApi {
  // The image is a cubin, or PTX with a NUL at its end. It is copied.
  const char* (*load)(const void* image, std::size_t bytes, Module* module) = nullptr;
  // Also loads the code into the calling thread's current device: the driver would otherwise do so at the first launch, which
  // may happen inside a capture.
  const char* (*kernel)(Module module, const char* name, ModuleKernel* kernel) = nullptr;
  const char* (*unload)(Module module) = nullptr;
  // Launches the kernel of one argument, a struct of `bytes` bytes, on the stream; does not wait.
  const char* (*launch)(ModuleKernel kernel, unsigned blocks, unsigned threads, const void* argument, std::size_t bytes,
                        Stream stream) = nullptr;
};

const ModuleApi& module_api();
const ModuleApi* set_fake(const ModuleApi* fake);  // for tests: see ScopedFake

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
