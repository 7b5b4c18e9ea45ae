#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/device.h>

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

}  // namespace

Tensor to_device(const Arg& x, const std::string& device, const std::string& from) {
  const ToDeviceAttrs attrs{device, from};
  return apply(ops::to_device, {&x.tensor()}, &attrs, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/device.h>
