// Arrays of f16 and bf16 numbers for kernel tests, and the ways in which this processor multiplies them.
#pragma once

#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/cpu/products/bf16_pairs.h>
#include <tapedeck/kernels/cpu/products/half_products.h>
#include <tapedeck/kernels/half.h>

#include <vector>

namespace tapedeck::testing {

inline float half_number(DType dtype, std::uint16_t bits) {
  return dtype == DType::bf16 ? kernels::to_f32(kernels::Bf16{bits}) : kernels::to_f32(kernels::F16{bits});
}

inline float half_value(const Array& a, std::int64_t i) { return half_number(a.view.dtype, a.at<std::uint16_t>(i)); }

inline std::uint16_t half_bits(DType dtype, float x) {
  return dtype == DType::bf16 ? kernels::to_bf16(x).bits : kernels::to_f16(x).bits;
}

inline Array random_halves(Random& random, DType dtype, const Sizes& sizes) {
  const Array a = make_array(dtype, sizes);
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (std::int64_t i = 0; i < a.numel(); ++i) a.at<std::uint16_t>(i) = half_bits(dtype, uniform(random));
  return a;
}

struct HalfWay {
  DType dtype;
  kernels::cpu::HalfProducts way;
};

inline std::vector<HalfWay> ways_of_this_processor() {
  using kernels::cpu::HalfProducts;
  std::vector<HalfWay> ways = {{DType::f16, HalfProducts::f32}, {DType::bf16, HalfProducts::f32}};
  if (kernels::cpu::multiplies_bf16_pairs()) ways.push_back({DType::bf16, HalfProducts::pairs});
  return ways;
}

}  // namespace tapedeck::testing
