// Arrays of f16 and bf16 for the tests of the device's kernels: conversion to and from f32, element for element.
#pragma once

#include <tapedeck/kernels/half.h>
#include <tapedeck/tests/kernels/views.h>

namespace tapedeck::testing {

// The same numbers as another floating type, rounded to nearest; the result is dense. Halves convert from and to f32.
inline Array converted(const Array& from, DType dtype) {
  Array to = make_array(dtype, Sizes(from.view.sizes, from.view.sizes + from.view.rank));
  for (std::int64_t i = 0; i < from.numel(); ++i) {
    double x = 0;
    if (from.view.dtype == DType::f16)
      x = kernels::to_f32(from.at<kernels::F16>(i));
    else if (from.view.dtype == DType::bf16)
      x = kernels::to_f32(from.at<kernels::Bf16>(i));
    else
      x = from.get(i);
    if (dtype == DType::f16)
      to.at<kernels::F16>(i) = kernels::to_f16(static_cast<float>(x));
    else if (dtype == DType::bf16)
      to.at<kernels::Bf16>(i) = kernels::to_bf16(static_cast<float>(x));
    else
      to.set(i, x);
  }
  return to;
}

// The same numbers in memory where images lie `gap` elements further apart. The gaps hold ones in every byte.
inline Array with_gaps(const Array& from, std::int64_t gap) {
  Array to = from;
  const std::int64_t images = from.view.sizes[0], size = images > 0 ? from.numel() / images : 0;
  const std::size_t width = dtype_size(from.view.dtype);
  to.view.strides[0] = size + gap;
  to.storage = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>(images * (size + gap)) * width / 8 + 1,
                                                            0x0101010101010101u);
  to.view.data = to.storage->data();
  for (std::int64_t i = 0; i < from.numel(); ++i) std::memcpy(to.address(i), from.address(i), width);
  return to;
}

// True if every byte in the gaps between the images still is one.
inline bool gaps_untouched(const Array& a) {
  const std::int64_t images = a.view.sizes[0], size = images > 0 ? a.numel() / images : 0;
  const auto width = static_cast<std::int64_t>(dtype_size(a.view.dtype));
  for (std::int64_t image = 0; image < images; ++image)
    for (std::int64_t i = size; i < a.view.strides[0]; ++i)
      for (std::int64_t byte = 0; byte < width; ++byte)
        if (a.view.as<char>()[(image * a.view.strides[0] + i) * width + byte] != 1) return false;
  return true;
}

}  // namespace tapedeck::testing
