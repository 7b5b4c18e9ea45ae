// unfold and fold on the device, in the emulator. The results must have the bits of the CPU kernels.
#include <tapedeck/tests/kernels/cuda/halves.h>
#include <tapedeck/kernels/cuda/convolution/unfold.inl>

#include <gtest/gtest.h>

namespace tapedeck::kernels::cpu {
void unfold(const KernelCall&);
void fold(const KernelCall&);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

struct UnfoldCase {
  Sizes image;
  UnfoldAttrs attrs;
};
const UnfoldCase kCases[] = {{{2, 3, 4, 5}, {{2, 3}, {1, 1}, {0, 0}, {1, 1}}},
                             {{1, 2, 7, 6}, {{3, 2}, {2, 3}, {1, 2}, {2, 1}}},
                             {{1, 1, 2, 2}, {{1, 1}, {2, 2}, {3, 3}, {1, 1}}},
                             {{2, 2, 6, 5}, {{3, 3}, {1, 2}, {1, 1}, {1, 2}}},
                             {{0, 2, 3, 3}, {{2, 2}, {1, 1}, {0, 0}, {1, 1}}}};

Sizes columns_of(const UnfoldCase& c) {
  return {c.image[0], c.image[1] * c.attrs.window[0] * c.attrs.window[1],
          windows_along(c.attrs, 0, c.image[2]) * windows_along(c.attrs, 1, c.image[3])};
}

TEST(CudaUnfold, UnfoldEqualsTheCpu) {
  Random random(2);
  for (const UnfoldCase& c : kCases)
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::u8}) {
      const Array x = random_array(random, dtype, c.image, 0, 200);
      const Array expected = make_array(dtype, columns_of(c)), result = make_array(dtype, columns_of(c));
      run(&cpu::unfold, {x}, {expected}, &c.attrs);
      EXPECT_EQ(run(&emulated::unfold, {x}, {result}, &c.attrs).fault, nullptr);
      EXPECT_TRUE(same_bits(expected, result)) << dtype_name(dtype) << ::testing::PrintToString(c.image);
    }
}

TEST(CudaUnfold, FoldEqualsTheCpu) {
  Random random(3);
  for (const UnfoldCase& c : kCases)
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const DType wide = kernels::is_half(dtype) ? DType::f32 : dtype;  // in which the CPU computes
      const FoldAttrs attrs{{c.image[2], c.image[3]}, c.attrs.window, c.attrs.stride, c.attrs.padding, c.attrs.dilation};
      const Array x = converted(random_array(random, DType::f32, columns_of(c)), dtype);
      const Array expected = make_array(wide, c.image), result = make_array(dtype, c.image);
      run(&cpu::fold, {converted(x, wide)}, {expected}, &attrs);
      EXPECT_EQ(run(&emulated::fold, {x}, {result}, &attrs).fault, nullptr);
      EXPECT_TRUE(same_bits(converted(expected, dtype), result)) << dtype_name(dtype) << ::testing::PrintToString(c.image);
    }
}

}  // namespace
}  // namespace tapedeck::testing
