// Copies between devices. "cpu", "cpu:1", ... are logical devices in one memory; a copy between them is a copy in that
// memory.
#if !defined(TAPEDECK_ENGINE_OPS_DEVICE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_DEVICE_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/device.h>

#include <string>

namespace tapedeck TAPEDECK_API {

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

// Copies x from the device `from` to `device`. The graph shows both names, and the gradient is copied back. Throws TypeError
// if a name is not the name of a device. Throws DeviceError if a name is that of a GPU and x has data: eager tensors have their
// data in the memory of the host.
Tensor to_device(const Arg& x, const std::string& device, const std::string& from = "cpu");
#endif

}  // namespace TAPEDECK_API
#endif
