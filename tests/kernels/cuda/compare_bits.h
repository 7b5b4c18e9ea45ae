// Runs a kernel of the device in the emulator and the CPU kernel of the same op, and compares the bits of their results.
#pragma once

#include <tapedeck/tests/kernels/cuda/halves.h>

#include <gtest/gtest.h>

namespace tapedeck::testing {

inline bool is_float(const Array& a) { return a.view.dtype != DType::u8 && a.view.dtype != DType::i32; }

// The operands in the type `dtype`; indices stay as they are.
inline std::vector<Array> in_type(const std::vector<Array>& arrays, DType dtype) {
  std::vector<Array> all;
  for (const Array& a : arrays) all.push_back(is_float(a) ? converted(a, dtype) : a);
  return all;
}

// Runs both kernels on operands in each type, the device also with gaps between images. The CPU computes halves in f32.
inline void expect_equal(Kernel by_cpu, Kernel by_device, const std::vector<Array>& inputs, const Array& result,
                         const void* attrs, const char* what) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const DType wide = kernels::is_half(dtype) ? DType::f32 : dtype;
    const std::vector<Array> narrow = in_type(inputs, dtype);
    Array expected = in_type({result}, wide)[0];
    ASSERT_EQ(run(by_cpu, in_type(narrow, wide), {expected}, attrs).fault, nullptr) << what;
    if (is_float(expected)) expected = converted(expected, dtype);
    for (const bool gaps : {false, true}) {
      std::vector<Array> operands = narrow;
      if (gaps)
        for (Array& a : operands) a = with_gaps(a, 3);
      const Array output = with_gaps(in_type({result}, dtype)[0], gaps ? 2 : 0);
      EXPECT_EQ(run(by_device, operands, {output}, attrs).fault, nullptr) << what;
      EXPECT_TRUE(same_bits(expected, output)) << what << " in " << dtype_name(dtype) << (gaps ? " with gaps" : "") << ", case "
                                               << ::testing::PrintToString(inputs[0].numel());
      EXPECT_TRUE(gaps_untouched(output)) << what;
    }
  }
}

}  // namespace tapedeck::testing
