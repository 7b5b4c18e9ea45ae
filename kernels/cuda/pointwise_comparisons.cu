// Comparisons, logic, and choosing by a condition, on the device. The bodies and the list are in pointwise.inl.
#include <tapedeck/kernels/cuda/launch.cuh>
#include <tapedeck/kernels/export.h>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

TAPEDECK_POINTWISE_COMPARISONS(TAPEDECK_DEVICE_KERNEL)

}  // namespace cuda
}  // namespace tapedeck::kernels
