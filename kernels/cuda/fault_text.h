// The text of a fault. The kernels of the device report numbers (device_fault.h), all other code reports texts.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// The reported fault in the words of the CPU kernels; null if nothing was reported.
const char* fault_text(const KernelFault& fault);

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
