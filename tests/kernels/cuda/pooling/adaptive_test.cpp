// The adaptive pools of the device, in the emulator. Their results must have the bits of the CPU kernels.
#include <tapedeck/kernels/attrs/pool.h>
#include <tapedeck/tests/kernels/cuda/compare_bits.h>
#include <tapedeck/kernels/cuda/pooling/adaptive.inl>

#include <cmath>

namespace tapedeck::kernels::cpu {
void adaptive_avg_pool2d(const KernelCall&);
void adaptive_avg_pool2d_grad(const KernelCall&);
void adaptive_max_pool2d(const KernelCall&);
void adaptive_max_pool2d_index(const KernelCall&);
void adaptive_max_pool2d_at_index(const KernelCall&);
void adaptive_max_pool2d_grad_from_index(const KernelCall&);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

struct AdaptiveCase {
  Sizes x, y;
};
const AdaptiveCase kCases[] = {{{2, 3, 7, 5}, {2, 3, 3, 2}}, {{1, 2, 3, 4}, {1, 2, 5, 4}}, {{2, 2, 6, 8}, {2, 2, 1, 1}},
                               {{1, 1, 5, 3}, {1, 1, 2, 7}}, {{0, 2, 4, 4}, {0, 2, 2, 2}}, {{3, 1, 9, 9}, {3, 1, 9, 9}}};

AdaptivePoolAttrs size_of(const Sizes& sizes) { return {{sizes[2], sizes[3]}}; }

TEST(CudaAdaptivePools, MeansEqualTheCpu) {
  Random random(3);
  for (const AdaptiveCase& c : kCases) {
    const Array x = random_array(random, DType::f32, c.x), y = random_array(random, DType::f32, c.y);
    const AdaptivePoolAttrs attrs = size_of(c.y), grad_attrs = size_of(c.x);
    expect_equal(&cpu::adaptive_avg_pool2d, &emulated::adaptive_avg_pool2d, {x}, y, &attrs, "mean");
    expect_equal(&cpu::adaptive_avg_pool2d_grad, &emulated::adaptive_avg_pool2d_grad, {y}, x, &grad_attrs, "gradient");
  }
}

TEST(CudaAdaptivePools, MaximaAndIndicesEqualTheCpu) {
  Random random(4);
  for (const AdaptiveCase& c : kCases) {
    const Array x = random_array(random, DType::f32, c.x), y = make_array(DType::f32, c.y), index = make_array(DType::i32, c.y);
    for (std::int64_t i = 0; i < x.numel(); ++i)
      if (random() % 3 == 0) x.set(i, random() % 4 == 0 ? std::nan("") : 1.5);
    const AdaptivePoolAttrs attrs = size_of(c.y);
    expect_equal(&cpu::adaptive_max_pool2d, &emulated::adaptive_max_pool2d, {x}, y, &attrs, "maximum");
    expect_equal(&cpu::adaptive_max_pool2d_index, &emulated::adaptive_max_pool2d_index, {x}, index, &attrs, "index");
  }
}

// An index may name any element of the plane, and several indices may name one.
TEST(CudaAdaptivePools, IndicesAreFollowedAsOnTheCpu) {
  Random random(5);
  for (const AdaptiveCase& c : kCases) {
    const Array x = random_array(random, DType::f32, c.x), y = random_array(random, DType::f32, c.y);
    const Array index = make_array(DType::i32, c.y);
    for (std::int64_t i = 0; i < index.numel(); ++i)
      index.set(i, static_cast<double>(random() % static_cast<unsigned>(c.x[2] * c.x[3])));
    const AdaptivePoolAttrs grad_attrs = size_of(c.x);
    expect_equal(&cpu::adaptive_max_pool2d_at_index, &emulated::adaptive_max_pool2d_at_index, {x, index}, y, nullptr,
                 "at index");
    expect_equal(&cpu::adaptive_max_pool2d_grad_from_index, &emulated::adaptive_max_pool2d_grad_from_index, {index, y}, x,
                 &grad_attrs, "gradient from index");
  }
}

TEST(CudaAdaptivePools, ReportAnIndexOutsideThePlane) {
  const Array x = make_array(DType::f32, {1, 1, 3, 4}), y = make_array(DType::f32, {1, 1, 2, 2});
  const Array index = make_array(DType::i32, {1, 1, 2, 2});
  for (const double outside : {-1.0, 12.0}) {
    index.set(2, outside);
    const Outcome outcome = run(&emulated::adaptive_max_pool2d_at_index, {x, index}, {y});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(outcome.fault),
              static_cast<std::uintptr_t>(emulated::Fault::index_outside_plane));
    EXPECT_EQ(static_cast<double>(outcome.value), outside);
  }
}

}  // namespace
}  // namespace tapedeck::testing
