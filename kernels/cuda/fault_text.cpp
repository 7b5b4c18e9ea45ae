#include <tapedeck/kernels/cuda/fault_text.h>

#include <tapedeck/kernels/cuda/fault_list.h>

#include <cstdint>
#include <iterator>

namespace tapedeck::kernels::cuda {

namespace {
constexpr std::uintptr_t kNumbers = 4096;  // no string has such an address

#define TAPEDECK_FAULT(name, text) text,
constexpr const char* kTexts[] = {nullptr, TAPEDECK_DEVICE_FAULTS(TAPEDECK_FAULT)};
#undef TAPEDECK_FAULT
}  // namespace

const char* fault_text(const KernelFault& fault) {
  const char* what = fault.what.load(std::memory_order_acquire);
  const auto number = reinterpret_cast<std::uintptr_t>(what);
  if (number >= kNumbers) return what;
  return number < std::size(kTexts) ? kTexts[number] : "a fault of a kind that this version does not know";
}

}  // namespace tapedeck::kernels::cuda
