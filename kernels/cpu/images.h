// A tensor [n,c,...] whose images may lie any number of elements apart, as the trait `batch_strides` of an op allows. A kernel
// neither reads nor writes the memory between the images.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <cstdint>

namespace tapedeck::kernels::cpu {

// The number of elements from one image to the next. The stride of a single image has no meaning, so the size of an image is
// used instead.
inline std::int64_t image_stride(const View& v) {
  if (v.rank > 0 && v.sizes[0] > 1) return v.strides[0];
  std::int64_t size = 1;
  for (int d = 1; d < v.rank; ++d) size *= v.sizes[d];
  return size;
}

template <class T>
class Images {
 public:
  // REQUIRES: v.rank >= 2
  explicit Images(const View& v) : first_(v.as<T>()), channels_(v.sizes[1]), plane_(1), stride_(image_stride(v)) {
    for (int d = 2; d < v.rank; ++d) plane_ *= v.sizes[d];
    packed_ = stride_ == channels_ * plane_;
  }

  T* image(std::int64_t i) const { return first_ + i * stride_; }
  // Plane i, counted through all images: plane i % channels of image i / channels.
  T* plane(std::int64_t i) const {
    return packed_ ? first_ + i * plane_ : first_ + i / channels_ * stride_ + i % channels_ * plane_;
  }

 private:
  T* first_;
  std::int64_t channels_, plane_, stride_;
  bool packed_;
};

}  // namespace tapedeck::kernels::cpu
