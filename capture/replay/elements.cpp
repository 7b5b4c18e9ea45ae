#include <tapedeck/capture/replay/elements.h>

#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <cstring>

namespace tapedeck {

namespace {

template <class T>
T read(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

TensorElements::TensorElements(const Tensor& tensor)
    : dtype_(tensor.dtype()),
      size_(dtype_size(tensor.dtype())),
      count_(tensor.numel()),
      bytes_(static_cast<std::size_t>(tensor.bytes())) {
  tensor.copy_to(bytes_.data(), bytes_.size(), size_);
}

long double TensorElements::number(std::int64_t i) const {
  switch (dtype_) {
    case DType::f32:
      return read<float>(at(i));
    case DType::f64:
      return read<double>(at(i));
    case DType::f16:
      return kernels::to_f32(read<kernels::F16>(at(i)));
    case DType::bf16:
      return kernels::to_f32(read<kernels::Bf16>(at(i)));
    case DType::i32:
      return read<std::int32_t>(at(i));
    case DType::i64:
      return read<std::int64_t>(at(i));
    case DType::u8:
      return *at(i);
    case DType::boolean:
      return *at(i) != 0;
  }
  return 0;
}

std::string TensorElements::text(std::int64_t i) const {
  switch (dtype_) {
    case DType::f64:
      return fmt::format("{}", read<double>(at(i)));
    case DType::i32:
    case DType::i64:
    case DType::u8:
      return fmt::format("{}", static_cast<std::int64_t>(number(i)));
    case DType::boolean:
      return *at(i) != 0 ? "true" : "false";
    default:
      return fmt::format("{}", static_cast<float>(number(i)));
  }
}

bool TensorElements::same_bits(std::int64_t i, const TensorElements& other) const {
  return std::memcmp(at(i), other.at(i), size_) == 0;
}

}  // namespace tapedeck
