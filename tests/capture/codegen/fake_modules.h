// The loader of CUDA for kernels of the host: an image is the text of a source (fake_rtc.h), which the compiler of the host
// compiles, and a launch runs the kernel there at once.
#pragma once

#include <tapedeck/kernels/cuda/module.h>
#include <tapedeck/tests/capture/codegen/host_kernels.h>

#include <cstddef>
#include <string>

namespace tapedeck::test {

// Modules of the host. `failure` makes loading or launching fail.
struct FakeModules {
  FakeModules() {
    loaded = launches = 0;
    failure = nullptr;
    api.load = [](const void* image, std::size_t bytes, kernels::cuda::Module* module) -> const char* {
      if (failure && std::string(failure) == "load") return "the image is refused";
      *module = new HostLibrary(std::string(static_cast<const char*>(image), bytes));
      ++loaded;
      return nullptr;
    };
    api.kernel = [](kernels::cuda::Module module, const char* name, kernels::cuda::ModuleKernel* kernel) -> const char* {
      *kernel = reinterpret_cast<void*>(static_cast<HostLibrary*>(module)->kernel(name));
      return *kernel ? nullptr : "there is no such kernel";
    };
    api.unload = [](kernels::cuda::Module module) -> const char* {
      delete static_cast<HostLibrary*>(module);
      --loaded;
      return nullptr;
    };
    api.launch = [](kernels::cuda::ModuleKernel kernel, unsigned blocks, unsigned threads, const void* argument,
                    std::size_t bytes, kernels::cuda::Stream stream) -> const char* {
      if (failure && std::string(failure) == "launch") return "the launch is refused";
      last_bytes = bytes;
      last_stream = stream;
      ++launches;
      reinterpret_cast<HostLibrary::Entry>(kernel)(argument, blocks, threads);
      return nullptr;
    };
  }

  kernels::cuda::ModuleApi api;
  static inline int loaded = 0, launches = 0;
  static inline std::size_t last_bytes = 0;
  static inline kernels::cuda::Stream last_stream = nullptr;
  static inline const char* failure = nullptr;
};

}  // namespace tapedeck::test
