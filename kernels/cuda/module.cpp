// Calls the CUDA runtime for module.h. Like runtime.cpp, the file has two halves: with CUDA, and without.
#include <tapedeck/kernels/cuda/module.h>

#include <atomic>

#if TAPEDECK_HAS_CUDA

#include <tapedeck/kernels/cuda/current_device.h>

namespace tapedeck::kernels::cuda {
namespace {

const char* load(const void* image, std::size_t, Module* module) {
  return text_of(
      cudaLibraryLoadData(reinterpret_cast<cudaLibrary_t*>(module), image, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

const char* find_kernel(Module module, const char* name, ModuleKernel* kernel) {
  const cudaError_t error =
      cudaLibraryGetKernel(reinterpret_cast<cudaKernel_t*>(kernel), static_cast<cudaLibrary_t>(module), name);
  if (error != cudaSuccess) return text_of(error);
  cudaFuncAttributes ignored;
  return text_of(cudaFuncGetAttributes(&ignored, *kernel));
}

const char* unload(Module module) { return text_of(cudaLibraryUnload(static_cast<cudaLibrary_t>(module))); }

const char* launch(ModuleKernel kernel, unsigned blocks, unsigned threads, const void* argument, std::size_t, Stream stream) {
  void* arguments[] = {const_cast<void*>(argument)};
  return text_of(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, 0, static_cast<cudaStream_t>(stream)));
}

}  // namespace
}  // namespace tapedeck::kernels::cuda

#else

namespace tapedeck::kernels::cuda {
namespace {

constexpr const char* kNotBuilt = "built without CUDA";

const char* load(const void*, std::size_t, Module*) { return kNotBuilt; }
const char* find_kernel(Module, const char*, ModuleKernel*) { return kNotBuilt; }
const char* unload(Module) { return kNotBuilt; }
const char* launch(ModuleKernel, unsigned, unsigned, const void*, std::size_t, Stream) { return kNotBuilt; }

}  // namespace
}  // namespace tapedeck::kernels::cuda

#endif

namespace tapedeck::kernels::cuda {
namespace {

constexpr ModuleApi kRuntime{load, find_kernel, unload, launch};
std::atomic<const ModuleApi*> fake_api{nullptr};

}  // namespace

const ModuleApi& module_api() {
  const ModuleApi* const fake = fake_api.load(std::memory_order_acquire);
  return fake ? *fake : kRuntime;
}

const ModuleApi* set_fake(const ModuleApi* fake) { return fake_api.exchange(fake, std::memory_order_acq_rel); }

}  // namespace tapedeck::kernels::cuda
