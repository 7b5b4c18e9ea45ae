// Calls of ops on a device with a memory of its own (eager_device.h).
#pragma once

#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

// Operands of the host with at most this many bytes go along with a call on a device: learning rates, counters, random states.
inline constexpr std::int64_t kBytesThatGoAlong = 64;

// The device on which a call with these operands runs; null: the host. It is the device of the first operand that is on one. A
// draw, and an op without operands, runs on the device of the thread (OnDevice in ops/device.h). The op `to_device` runs on the
// device that it copies to or from.
bool copies_between_devices(const Op& op);  // whether it is `to_device`
EagerDevice* device_of_call(const Op& op, detail::TensorImpl* const* in, int n, const void* attrs);

// As run_kernel() (dispatch_parts.h), on the device that has the results. An op that has no kernel there, or whose kernel does
// not take the dtypes, runs on the host between two copies; the first such call of an op says so on stderr. Throws DeviceError
// for an operand that is elsewhere.
void run_on_device(const Op& op, detail::TensorImpl* const* in, int n, const void* attrs, detail::TensorImpl* const* out,
                   int n_out, Site site);

// A dense copy on another device; null: on the host. The caller owns the reference.
detail::TensorImpl* copy_to_device(const detail::TensorImpl& t, EagerDevice* to, Site site);

}  // namespace tapedeck
