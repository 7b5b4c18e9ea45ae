// The elements of a tensor of any dtype, as numbers and as text.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A copy of the elements in C order, whatever the strides of the tensor. TypeError for a tensor without data. O(elements).
class TensorElements {
 public:
  explicit TensorElements(const Tensor& tensor);

  std::int64_t count() const { return count_; }
  // long double holds every element of every dtype exactly, the integers of i64 among them.
  long double number(std::int64_t i) const;
  // The shortest text that reads back as the same element of the dtype: "0.1", "-7", "true", "nan".
  std::string text(std::int64_t i) const;
  bool same_bits(std::int64_t i, const TensorElements& other) const;  // REQUIRES: the same dtype
  bool all_same_bits(const TensorElements& other) const { return dtype_ == other.dtype_ && bytes_ == other.bytes_; }

 private:
  const unsigned char* at(std::int64_t i) const { return bytes_.data() + static_cast<std::size_t>(i) * size_; }

  DType dtype_;
  std::size_t size_;
  std::int64_t count_;
  std::vector<unsigned char> bytes_;
};

}  // namespace TAPEDECK_API
