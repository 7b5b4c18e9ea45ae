// Scans in the emulator. The oracles are the CPU kernels; every byte must be theirs.
#include <tapedeck/tests/kernels/cuda/movement/compare.h>

#include <tapedeck/kernels/cuda/movement/scan.inl>

namespace tapedeck::kernels::cpu {
void cumsum(const KernelCall& call);
void cumprod(const KernelCall& call);
void linear_scan(const KernelCall& call);
void logcumsumexp(const KernelCall& call);
void cummax(const KernelCall& call);
void cummin(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace device = kernels::emulated;
namespace cpu = kernels::cpu;

const std::vector<DType> kScanNumbers = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8};

struct Line {
  Sizes sizes;
  std::int64_t axis;
};

const std::vector<Line> kScanLines = {{{7}, 0},         {{3, 5, 2}, 1}, {{3, 70}, 0}, {{4, 150}, 1},
                                      {{2, 130, 3}, 1}, {{0}, 0},       {{3, 0}, 0}};

TEST(CudaScan, AddsUpAndMultiplies) {
  Random random(1);
  for (const DType dtype : kScanNumbers)
    for (const auto& [sizes, axis] : kScanLines)
      for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true}) {
          const ScanAttrs attrs{axis, exclusive, reverse};
          const Array x = random_array(random, dtype, sizes, dtype == DType::u8 ? 0 : -3, 3);
          expect_same(&device::cumsum, &cpu::cumsum, {x}, {make_array(dtype, sizes)}, &attrs);
          expect_same(&device::cumprod, &cpu::cumprod, {x}, {make_array(dtype, sizes)}, &attrs);
          expect_same_in_place(&device::cumsum, &cpu::cumsum, {x}, 0, &attrs);
        }
}

TEST(CudaScan, KeepsTheExtremes) {
  Random random(2);
  for (const DType dtype : kScanNumbers)
    for (const auto& [sizes, axis] : kScanLines) {
      const AxisAttrs attrs{axis};
      Array x = random_array(random, DType::i32, sizes, 0, 9);
      Array y = make_array(dtype, sizes);
      for (std::int64_t i = 0; i < x.numel(); ++i)
        y.set(i, is_floating(dtype) && random() % 40 == 0 ? __builtin_nan("") : x.get(i));
      const std::vector<Array> out = {make_array(dtype, sizes), make_array(DType::i64, sizes)};
      expect_same(&device::cummax, &cpu::cummax, {y}, out, &attrs);
      expect_same(&device::cummin, &cpu::cummin, {y}, out, &attrs);
    }
}

TEST(CudaScan, RunsRecurrences) {
  Random random(3);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [sizes, axis] : kScanLines)
      for (const bool reverse : {false, true}) {
        const LinearScanAttrs attrs{axis, reverse};
        const Array a = random_array(random, dtype, sizes), b = random_array(random, dtype, sizes);
        expect_same(&device::linear_scan, &cpu::linear_scan, {a, b}, {make_array(dtype, sizes)}, &attrs);
        expect_same(&device::logcumsumexp, &cpu::logcumsumexp, {a}, {make_array(dtype, sizes)}, &attrs);
      }
}

}  // namespace
}  // namespace tapedeck::testing
