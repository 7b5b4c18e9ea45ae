// The device on which the tests call kernels. The real one is a GPU. Others stand in for it where no GPU is: memory of the host
// with the kernels of the CPU, or with the CUDA kernels in the emulator. So the tests themselves are tested on every machine.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/kernel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace tapedeck::gpu {

// The device does not answer any more, for example after an access outside of its memory. A process cannot use it again.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;

  // Memory, aligned to 256 bytes. Copies are finished when the function returns.
  virtual unsigned char* allocate(std::size_t bytes) = 0;
  virtual void release(unsigned char* memory) = 0;
  virtual void write(void* to, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, const void* from, std::size_t bytes) = 0;

  // Whether the op has a kernel here, and one that takes f16 and bf16 itself.
  virtual bool has(const Op& op) const = 0;
  virtual bool takes_halves(const Op& op) const = 0;
  virtual std::int64_t workspace(const Op& op, const KernelCall& call) const = 0;
  // The place where kernels of this device can report a fault.
  virtual KernelFault* fault() = 0;
  // Starts the kernel.
  virtual void run(const Op& op, KernelCall call) = 0;
  virtual void wait() = 0;  // throws DeviceLost
};

// The kernels of the CPU in memory of the host.
std::unique_ptr<Device> host_device();
// The CUDA kernels in the emulator of tests/kernels/cuda/emulator, in memory of the host.
std::unique_ptr<Device> emulated_device();
// The GPU. REQUIRES: cuda_status().available.
std::unique_ptr<Device> cuda_device();

// The text of the fault, and the offending number; empty if there is none.
std::string fault_text(const KernelFault& fault);

}  // namespace tapedeck::gpu
