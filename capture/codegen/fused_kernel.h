// A fused node as one kernel on a CUDA device: its region is written as C++, compiled at run time, loaded and launched.
//
//     auto kernels = compile_fused({{&region, inputs, outputs}}, 90);    at warm-up, never inside a capture
//     kernels[0].kernel->run(call);                                     as often as one likes, also inside a capture
//
// The results have the bits of the ops one by one on the device, and of the CPU kernels wherever those of the device have them
// (kernels/cuda/README.md): values inside are rounded to their own type, and contraction is off.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/kernel.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tapedeck::codegen {

class FusedKernel {
 public:
  virtual ~FusedKernel() = default;

  // Launches the kernel on call.stream and does not wait. The views of the call are those that the kernel was made for, perhaps
  // at other addresses; whether 16 bytes are read at a time follows from the addresses. A launch that fails is reported in the
  // call. Neither allocates nor loads. Thread safe.
  virtual void run(const KernelCall& call) const = 0;
};

// The same as a kernel: call.attrs is the FusedKernel.
void run_fused_kernel(const KernelCall& call);

struct FusedRequest {
  const Graph* region = nullptr;
  // The sizes and strides of the calls to come; the addresses are not read. Operands are broadcast: they have the sizes of the
  // results, and strides of 0.
  std::span<const View> inputs, outputs;
};

struct FusedResult {
  std::unique_ptr<FusedKernel> kernel;
  std::string why;  // there is no kernel: an op without an expression, no NVRTC, its log, or an error of the runtime
};

// Compiles and loads the kernels of the requests for devices of compute capability sm, several at a time. Equal kernels are
// compiled once, and those of an earlier run are read from the disk (kernel_cache.h). The calling thread's current device is
// the one that runs them. For a request without a kernel the caller runs the nodes of the region one by one. Thread safe.
std::vector<FusedResult> compile_fused(std::span<const FusedRequest> requests, int sm);

}  // namespace tapedeck::codegen
