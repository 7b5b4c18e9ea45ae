// Faults that a kernel finds while it runs on the device, for example an index out of range. KernelCall::fault then points to
// memory of the host that the device can write (DeviceRuntime::allocate_pinned). A device has no texts of the host, so it
// writes a small number in the place of KernelFault::what; fault_text() turns the number into the text that the CPU kernels
// report.
#pragma once

#include <tapedeck/kernels/cuda/fault_list.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

#define TAPEDECK_FAULT(name, text) name,
enum class Fault : std::uint64_t { none, TAPEDECK_DEVICE_FAULTS(TAPEDECK_FAULT) };
#undef TAPEDECK_FAULT

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
