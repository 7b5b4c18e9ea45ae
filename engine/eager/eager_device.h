// A device with a memory of its own, as eager code sees it. Tensors whose storage names a device have their bytes there. An op
// with such an operand runs there, after the ops that were called before it, and the call returns before the op has run.
//
// There is one object for each device of the machine, made at its first use and never destroyed. The ops of one thread run in
// the order of their calls, on a stream of the thread. Ops of different threads may run side by side; an op that uses bytes
// which ops of other threads have used before runs after these.
//
// Thread safety: any thread may call every function of this file, except that ScopedEagerDevice is for tests.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

struct MemoryStats;

class EagerDevice {
 public:
  virtual ~EagerDevice() = default;

  virtual const std::string& name() const = 0;  // "cuda", "cuda:1"

  // A block of at least one byte, aligned to 256 bytes, with undefined contents. Throws ExecutionError that names the size and
  // the device if there is not enough memory.
  void* allocate(std::int64_t bytes);
  void release(void* block, std::int64_t bytes) noexcept;  // ops that were called before may still use it
  MemoryStats memory() const noexcept;                     // of the tensors on this device, without rounding

  // Copies between the host and the device, in the order of the calls of the thread. `from` may be changed once write() has
  // returned. read() waits for all ops that the thread has called so far, and for those of other threads that the bytes depend
  // on. It throws the error of one that failed (synchronize()).
  virtual void write(void* to, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, const void* from, std::size_t bytes) = 0;

  virtual const kernels::cuda::KernelEntry* kernel(std::string_view op) const = 0;  // null: the op has none
  // The bytes of workspace that this kernel wants for the call.
  virtual std::int64_t workspace(const kernels::cuda::KernelEntry& entry, const KernelCall& call) const = 0;
  // Gives the kernel to the device. Sets stream and fault of the call. A kernel that cannot be started is an error of the next
  // synchronize().
  virtual void launch(const Op& op, Kernel kernel, KernelCall& call, Site site) = 0;
  // The next two functions order ops and the work of another stream on the same device, such as the stream of a replay. Neither
  // function waits. A device whose ops have run when their calls return does nothing.
  // Work that the stream is given from now on runs after all ops that any thread has called so far.
  virtual void order_after_ops(kernels::cuda::Stream stream);
  // All ops that any thread calls from now on run after the work that the stream has been given so far.
  virtual void order_ops_after(kernels::cuda::Stream stream);

  // Waits for all ops that any thread has called so far. Throws ExecutionError that names an op that has failed, and its call
  // site. Each error is thrown once, in the thread that waits first: of the failed ops of one thread it is the first.
  virtual void synchronize() = 0;

 protected:
  // Null if there is not enough memory.
  virtual void* take(std::int64_t bytes) = 0;
  virtual void give(void* block) noexcept = 0;

 private:
  std::atomic<std::int64_t> in_use_{0}, peak_{0}, blocks_{0};
};

// The device of this name: null for "cpu" and "cpu:N", which have the memory of the host. Throws UsageError for a name that is
// none, and DeviceError, with the reason, for a device that this machine does not have.
EagerDevice* find_eager_device(std::string_view name);

// The name is "cpu" or "cuda", alone or with ":" and a number below 10000.
bool is_device_name(std::string_view name) noexcept;

// Lets a name stand for another device, until the object is destroyed. Not thread safe.
class ScopedEagerDevice {
 public:
  ScopedEagerDevice(std::string name, EagerDevice& device);
  ~ScopedEagerDevice();
  ScopedEagerDevice(const ScopedEagerDevice&) = delete;

 private:
  std::string before_name_;
  EagerDevice* before_;
};

}  // namespace TAPEDECK_API
