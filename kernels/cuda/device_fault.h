// Faults that a kernel finds while it runs on the device, for example an index out of range. KernelCall::fault then points to
// memory of the host that the device can write (DeviceRuntime::allocate_pinned). A device has no texts of the host, so it
// writes a small number in the place of KernelFault::what; fault_text() turns the number into the text that the CPU kernels
// report.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

enum class Fault : std::uint64_t {
  none = 0,
  index_out_of_range = 1,
  label_out_of_range = 2,
  division_by_zero = 3,
  not_a_probability = 4,
  negative_power_of_zero = 5,
  negative_shift = 6,
  number_outside_bins = 7,
  another_count = 8,  // "another number of elements than promised"
};

// The first report of a call stays; later ones are dropped. Any thread of the device may report.
TAPEDECK_DEVICE void report_fault(KernelFault* fault, Fault what, std::int64_t value) {
  static_assert(sizeof(KernelFault) == 16 && sizeof(fault->what) == 8, "the device writes two words of 8 bytes");
  auto* words = reinterpret_cast<unsigned long long*>(fault);
#ifdef __CUDA_ARCH__
  if (atomicCAS_system(words, 0ull, static_cast<unsigned long long>(what)) == 0ull)
    words[1] = static_cast<unsigned long long>(value);
#else
  if (words[0] != 0) return;
  words[0] = static_cast<unsigned long long>(what);
  words[1] = static_cast<unsigned long long>(value);
#endif
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
