#include <tapedeck/kernels/cuda/fault_text.h>

#include <tapedeck/kernels/cuda/device_fault.h>

#include <cstdint>

namespace tapedeck::kernels::cuda {

namespace {
constexpr std::uintptr_t kNumbers = 4096;  // no string has such an address
}  // namespace

const char* fault_text(const KernelFault& fault) {
  using emulated::Fault;  // the numbers are those of the device's namespace
  const char* what = fault.what.load(std::memory_order_acquire);
  const auto number = reinterpret_cast<std::uintptr_t>(what);
  if (number >= kNumbers) return what;
  switch (static_cast<Fault>(number)) {
    case Fault::none:
      return nullptr;
    case Fault::index_out_of_range:
      return "index out of range";
    case Fault::label_out_of_range:
      return "label out of range";
    case Fault::division_by_zero:
      return "integer division by zero";
    case Fault::not_a_probability:
      return "not a probability, at element";
  }
  return "a fault of a kind that this version does not know";
}

}  // namespace tapedeck::kernels::cuda
