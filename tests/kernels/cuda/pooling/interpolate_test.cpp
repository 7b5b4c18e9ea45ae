// Resampling on the device, in the emulator. The results must have the bits of the CPU kernels.
#include <tapedeck/tests/kernels/cuda/compare_bits.h>
#include <tapedeck/kernels/cuda/pooling/interpolate.inl>

namespace tapedeck::kernels::cpu {
void interpolate_nearest(const KernelCall&);
void interpolate_nearest_grad(const KernelCall&);
void interpolate_bilinear(const KernelCall&);
void interpolate_bilinear_grad(const KernelCall&);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

struct ResampleCase {
  Sizes x, y;
};
const ResampleCase kFlat[] = {{{2, 3, 4, 5}, {2, 3, 7, 9}}, {{1, 2, 4, 5}, {1, 2, 8, 3}},  {{1, 1, 1, 6}, {1, 1, 3, 1}},
                              {{2, 2, 3, 3}, {2, 2, 1, 5}}, {{1, 2, 3, 4}, {1, 2, 6, 12}}, {{0, 2, 3, 3}, {0, 2, 2, 2}}};
const ResampleCase kOthers[] = {{{2, 3, 4}, {2, 3, 7}}, {{2, 3, 7}, {2, 3, 3}}, {{1, 2, 2, 3, 2}, {1, 2, 3, 2, 5}}};

// bilinear keeps its taps in the workspace of the CPU kernel.
template <Kernel kernel>
void with_workspace(const KernelCall& call) {
  std::vector<Tap> taps(100);
  KernelCall copy = call;
  copy.workspace = taps.data(), copy.workspace_bytes = taps.size() * sizeof(Tap);
  kernel(copy);
}

void expect_nearest(Random& random, const ResampleCase& c) {
  const Array x = random_array(random, DType::f32, c.x), y = random_array(random, DType::f32, c.y);
  expect_equal(&cpu::interpolate_nearest, &emulated::interpolate_nearest, {x}, y, nullptr, "nearest");
  expect_equal(&cpu::interpolate_nearest_grad, &emulated::interpolate_nearest_grad, {y}, x, nullptr, "nearest, gradient");
}

TEST(CudaInterpolate, NearestEqualsTheCpu) {
  Random random(8);
  for (const ResampleCase& c : kFlat) expect_nearest(random, c);
  for (const ResampleCase& c : kOthers) expect_nearest(random, c);
}

TEST(CudaInterpolate, NearestMovesBytes) {
  const Array x = array_of(DType::u8, {1, 1, 2, 2}, {1, 2, 3, 250}), y = make_array(DType::u8, {1, 1, 4, 3});
  run(&emulated::interpolate_nearest, {x}, {y});
  EXPECT_EQ(values(y), (std::vector<double>{1, 1, 2, 1, 1, 2, 3, 3, 250, 3, 3, 250}));
}

TEST(CudaInterpolate, BilinearEqualsTheCpu) {
  Random random(9);
  for (const ResampleCase& c : kFlat)
    for (const bool align : {false, true}) {
      const Array x = random_array(random, DType::f32, c.x), y = random_array(random, DType::f32, c.y);
      InterpolateBilinearAttrs attrs;
      attrs.align_corners = align;
      expect_equal(&with_workspace<&cpu::interpolate_bilinear>, &emulated::interpolate_bilinear, {x}, y, &attrs, "bilinear");
      expect_equal(&with_workspace<&cpu::interpolate_bilinear_grad>, &emulated::interpolate_bilinear_grad, {y}, x, &attrs,
                   "bilinear, gradient");
    }
}

}  // namespace
}  // namespace tapedeck::testing
