#include <tapedeck/engine/ops/device.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

// Whether the name is "cpu" or "cuda", alone or with ":" and a number.
bool is_device_name(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon), number = colon == std::string_view::npos ? "0" : name.substr(colon + 1);
  const bool digits = !number.empty() && number.size() <= 4 &&
                      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return (kind == "cpu" || kind == "cuda") && digits;
}

void infer_to_device(Infer& f) {
  const auto& a = f.attributes<ToDeviceAttrs>();
  for (Name name : {a.device, a.from})
    if (!is_device_name(name.view())) f.fail(fmt::format("'{}' is no device: cpu, cpu:1, cuda", name.view()));
  infer_same(f);
}

// Tensors with data lie in the memory of the host, so one that moves to or from a GPU would be copied on the host without a
// word. A tensor without data moves anywhere: only the node is recorded.
void require_host(const Arg& x, const std::string& device) {
  const bool abstract = abstract_mode() || !x.tensor().defined() || x.tensor().abstract();
  if (abstract || !device.starts_with("cuda") || !is_device_name(device)) return;
  const kernels::cuda::CudaStatus& status = kernels::cuda::cuda_status();
  const std::string reason = status.available ? "eager tensors on a GPU are not part of this version" : status.reason;
  throw DeviceError(error_text("to_device", fmt::format("the device '{}' is not available: {}", device, reason), x.site()));
}

}  // namespace

Tensor to_device(const Arg& x, const std::string& device, const std::string& from) {
  require_host(x, device);
  require_host(x, from);
  const ToDeviceAttrs attrs{device, from};
  return apply(ops::to_device, {&x.tensor()}, &attrs, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/device.h>
