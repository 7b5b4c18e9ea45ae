#include <tapedeck/engine/ops/device.h>

#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/infer.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

void infer_to_device(Infer& f) {
  const auto& a = f.attributes<ToDeviceAttrs>();
  for (Name name : {a.device, a.from})
    if (!is_device_name(name.view())) f.fail(fmt::format("'{}' is no device: cpu, cpu:1, cuda", name.view()));
  infer_same(f);
}

// The device of this name; null: the host. Throws DeviceError, which names the call, if this machine does not have it.
EagerDevice* require_device(const std::string& device, Site site) {
  try {
    return find_eager_device(device);
  } catch (const DeviceError& error) {
    throw DeviceError(
        error_text("to_device", fmt::format("the device '{}' is not available: {}", device, error.message()), site));
  }
}

}  // namespace

Tensor to_device(const Arg& x, const std::string& device, const std::string& from) {
  const detail::TensorImpl* const t = x.tensor().impl();
  const bool has_data = t && t->storage && !abstract_mode() && is_device_name(device);
  if (has_data) require_device(device, x.site());
  EagerDevice* const there = has_data ? t->storage->device : nullptr;
  if (has_data && !there && is_device_name(from) && require_device(from, x.site()))
    throw DeviceError(error_text("to_device", fmt::format("the tensor is on cpu, not on {}", from), x.site()));
  const ToDeviceAttrs attrs{device, there ? there->name() : from};
  return apply(ops::to_device, {&x.tensor()}, &attrs, x.site());
}

std::string device_name(const Tensor& x) {
  if (!x.defined()) throw TypeError("device_name of an undefined tensor");
  const detail::TensorImpl& t = *x.impl();
  return t.storage && t.storage->device ? t.storage->device->name() : "cpu";
}

OnDevice::OnDevice(const std::string& device) : before_(thread_state().device) {
  thread_state().device = find_eager_device(device);
}
OnDevice::~OnDevice() { thread_state().device = before_; }

OnDeviceOf::OnDeviceOf(const Tensor& x) : before_(thread_state().device) {
  const detail::Storage* const storage = x.defined() ? x.impl()->storage : nullptr;
  thread_state().device = storage ? storage->device : nullptr;
}
OnDeviceOf::~OnDeviceOf() { thread_state().device = before_; }

void synchronize(const std::string& device) {
  if (EagerDevice* const d = find_eager_device(device)) d->synchronize();
}

MemoryStats device_memory_stats(const std::string& device) {
  const EagerDevice* const d = find_eager_device(device);
  return d ? d->memory() : memory_stats();
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/device.h>
