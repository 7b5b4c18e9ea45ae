// One call of a kernel of the device, with all that it reads and writes in the device's memory.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/kernels/kernel.h>

#include <string>
#include <vector>

namespace tapedeck::gpu {

// Throws the text of an error of the device, if there is one.
void must(const char* error);

// Memory of the device, released at the end.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* take(std::size_t bytes);

 private:
  std::vector<void*> blocks_;
};

// Random elements of a type in [low, high). Only the first `most_random` bytes are drawn; the others repeat them.
std::vector<unsigned char> random_bytes(const Type& type, double low, double high, std::size_t most_random);

// The call that an example of an op describes (engine/text/example.h).
class PreparedCall {
 public:
  // Floats of the example become `real`. Throws if the op has no kernel that takes them.
  PreparedCall(const std::string& example, DType real, std::size_t most_random = std::size_t{1} << 40);
  ~PreparedCall();
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  void run() { entry_->kernel(call_); }
  void wait();
  double bytes() const;  // of the operands and the results
  double flops() const { return flops_; }
  kernels::cuda::Stream stream() const { return stream_; }

 private:
  DeviceMemory memory_;
  const kernels::cuda::KernelEntry* entry_ = nullptr;
  kernels::cuda::Stream stream_ = nullptr;
  std::vector<unsigned char> attributes_;
  std::vector<Type> types_, results_;
  std::vector<View> views_;
  KernelFault fault_;
  KernelCall call_;
  double flops_ = 0;
};

}  // namespace tapedeck::gpu
