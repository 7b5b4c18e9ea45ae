// Images [n, c, ...] that may lie any number of elements apart, as the trait `batch_strides` of an op allows.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>

#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

// The number of elements of one channel of one image.
inline std::int64_t plane_of(const View& v) {
  std::int64_t plane = 1;
  for (int d = 2; d < v.rank; ++d) plane *= v.sizes[d];
  return plane;
}

template <class S>
struct Images {
  S* first = nullptr;
  std::int64_t stride = 0;

  Images() = default;
  Images(const View& v, std::int64_t distance) : first(v.as<S>()), stride(distance) {}
  // The stride of a single image means nothing.
  explicit Images(const View& v) : Images(v, v.sizes[0] > 1 ? v.strides[0] : 0) {}
  TAPEDECK_HD S* image(std::int64_t i) const { return first + i * stride; }
};

// Whether sums over the images of each channel are to be folded across channels: planes are too short for the lanes of a warp.
inline bool lie_side_by_side(std::int64_t plane) { return plane < 8; }

}  // namespace folds
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
