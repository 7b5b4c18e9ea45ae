// The CUDA kernels of comparisons, logic, and selection by a condition. The functions and the list are in pointwise.inl.
#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/cuda/launch.cuh>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

TAPEDECK_POINTWISE_COMPARISONS(TAPEDECK_DEVICE_KERNEL)

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
