#include <tapedeck/capture/onnx/onnx_model.h>

#include <fmt/format.h>
#include <array>

namespace tapedeck::onnx {

std::optional<DType> dtype_of(std::int64_t element_type) {
  switch (element_type) {
    case kFloat:
      return DType::f32;
    case kUint8:
      return DType::u8;
    case kInt32:
      return DType::i32;
    case kInt64:
      return DType::i64;
    case kBool:
      return DType::boolean;
    case kFloat16:
      return DType::f16;
    case kDouble:
      return DType::f64;
    case kBfloat16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

std::int32_t element_type_of(DType dtype) {
  constexpr std::array<std::int32_t, kDTypeCount> types = {kFloat, kDouble, kFloat16, kBfloat16, kInt32, kInt64, kUint8, kBool};
  return types[static_cast<std::size_t>(dtype)];
}

std::string element_type_name(std::int64_t element_type) {
  constexpr std::array<const char*, 25> names = {"undefined",      "float",    "uint8",        "int8",           "uint16",
                                                 "int16",          "int32",    "int64",        "string",         "bool",
                                                 "float16",        "double",   "uint32",       "uint64",         "complex64",
                                                 "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                                 "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0"};
  if (element_type < 0 || element_type >= static_cast<std::int64_t>(names.size())) return fmt::format("type {}", element_type);
  return names[static_cast<std::size_t>(element_type)];
}

}  // namespace tapedeck::onnx
