// Copies between devices. "cpu", "cpu:1", ... are logical devices in one memory; a copy between them is a copy in that
// memory.
#if !defined(TAPEDECK_ENGINE_OPS_DEVICE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_DEVICE_H

#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/device.h>

#include <string>

namespace tapedeck TAPEDECK_API {

class EagerDevice;

OP(to_device, {
                  .doc = "the same values in bytes of another device",
                  .traits = kCheap | kAnyStrides | kNativeHalf | kOwnSegment,
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .attrs = &attr_schema<ToDeviceAttrs>(),
                  .infer = infer_to_device,
                  .vjp =
                      [](Vjp& b) {
                        const auto& a = b.attributes<ToDeviceAttrs>();
                        const ToDeviceAttrs back{a.from, a.device};
                        b.dx(0, apply(ops::to_device, {&b.dy()}, &back, b.site()));
                      },
                  .examples = {"to_device(f32[3,4]) {device=\"cpu:1\", from=\"cpu\"}",
                               "to_device(i64[2]) {device=\"cpu\", from=\"cpu:1\"}"},
              })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Copies x to `device`: "cpu", "cuda", "cuda:1". The graph shows both names, and the gradient is copied back. A tensor with
// data says itself where it comes from; `from` is for abstract tensors. Throws TypeError if a name is not the name of a device,
// and DeviceError if this machine does not have the device, or inside a capture of tensors with data, whose ops all run on one
// device. A copy to the host waits for the ops before it.
Tensor to_device(const Arg& x, const std::string& device, const std::string& from = "cpu");

// The name of the device that has the bytes of the tensor; "cpu" for an abstract tensor.
std::string device_name(const Tensor& x);

// While it lives, ops without operands, draws and empty() make their results on the device, on this thread:
//     const OnDevice gpu("cuda");
//     const Tensor x = normal({64, 784});
// Ops with operands run where their operands are: on a device, if one of them is there. All operands must be there, except that
// small operands of the host (64 bytes: a learning rate, a counter, a random state) go along. Results are computed in the order
// of the calls of the thread, and a call returns before its result is there. Threads may compute side by side; an op that reads
// or writes the tensor of another thread comes after the ops of that thread which use it. An error on the device is thrown by
// the next read of a value that needs the op, or by synchronize(), and names the op and its call site; with TAPEDECK_SYNC=1
// every op waits. An op without a kernel on the device runs on the host between two copies, and says so once on stderr.
class OnDevice {
 public:
  explicit OnDevice(
      const std::string& device);  // throws UsageError for no device name, DeviceError for a device that is not there
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;

 private:
  EagerDevice* before_;
};

// The same for the device that has this tensor; the host has abstract tensors.
class OnDeviceOf {
 public:
  explicit OnDeviceOf(const Tensor& x);
  ~OnDeviceOf();
  OnDeviceOf(const OnDeviceOf&) = delete;

 private:
  EagerDevice* before_;
};

// Waits for the ops of all threads on the device. Throws the ExecutionError of one that has failed: of several ops of one
// thread the first.
void synchronize(const std::string& device);

// The bytes that tensors on the device hold now, and held at most.
MemoryStats device_memory_stats(const std::string& device);
#endif

}  // namespace TAPEDECK_API
#endif
