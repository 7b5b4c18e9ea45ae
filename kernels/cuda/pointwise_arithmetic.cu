// The CUDA kernels of arithmetic, and of gradients that are arithmetic. The functions and the list are in pointwise.inl.
#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/cuda/launch.cuh>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

TAPEDECK_POINTWISE_ARITHMETIC(TAPEDECK_DEVICE_KERNEL)

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
