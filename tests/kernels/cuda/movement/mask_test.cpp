// Selections by a mask in the emulator. The oracles are the CPU kernels; every byte must be theirs.
#include <tapedeck/tests/kernels/cuda/movement/compare.h>

#include <tapedeck/kernels/attrs/index.h>
#include <tapedeck/kernels/cuda/movement/mask.inl>

namespace tapedeck::kernels::cpu {
void nonzero(const KernelCall& call);
void masked_select(const KernelCall& call);
void masked_scatter(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace device = kernels::emulated;
namespace cpu = kernels::cpu;

// Zeros and ones; one in `share` is a one.
Array zeros_and_ones(Random& random, DType dtype, const Sizes& sizes, unsigned share) {
  Array a = make_array(dtype, sizes);
  for (std::int64_t i = 0; i < a.numel(); ++i) a.set(i, random() % share == 0);
  return a;
}

std::int64_t ones_of(const Array& a) {
  std::int64_t ones = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) ones += a.get(i) != 0;
  return ones;
}

struct Shape {
  Sizes sizes;
  std::int64_t more;  // elements promised beyond those that are selected
};

const std::vector<Shape> kShapes = {{{}, 0}, {{0}, 0}, {{2, 0, 3}, 2}, {{7}, 0}, {{7}, 2}, {{3, 5}, -1}, {{3, 4, 5}, 0}};
const std::vector<Shape> kLongShapes = {{{5000}, 0}, {{11, 400}, -1}, {{4097}, 3}};

std::vector<Shape> shapes_for(DType dtype) {
  std::vector<Shape> all = kShapes;
  if (dtype == DType::f32) all.insert(all.end(), kLongShapes.begin(), kLongShapes.end());
  return all;
}

Work work_of(const Array& mask) { return {device::selection_space(mask.view), 64}; }

TEST(CudaMask, FindsNonzeros) {
  Random random(1);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const auto& [sizes, more] : shapes_for(dtype)) {
      const Array x = zeros_and_ones(random, dtype, sizes, 3);
      const std::int64_t count = ones_of(x) + more;
      if (count < 0) continue;
      const CountAttrs attrs{count};
      expect_same(&device::nonzero, &cpu::nonzero, {x},
                  {make_array(DType::i64, {count, static_cast<std::int64_t>(sizes.size())})}, &attrs, work_of(x));
    }
}

TEST(CudaMask, TakesNegativeZeroForZeroAndNanForANumber) {
  const double nan = __builtin_nan("");
  const Array x = array_of(DType::f32, {5}, {-0.0, nan, 0.0, -1.0, -nan});
  const CountAttrs attrs{3};
  expect_same(&device::nonzero, &cpu::nonzero, {x}, {make_array(DType::i64, {3, 1})}, &attrs, work_of(x));
}

TEST(CudaMask, Selects) {
  Random random(2);
  for (const DType dtype : kAllTypes)
    for (const auto& [sizes, more] : shapes_for(dtype)) {
      const Array mask = zeros_and_ones(random, DType::boolean, sizes, 2);
      const std::int64_t count = ones_of(mask) + more;
      if (count < 0) continue;
      const CountAttrs attrs{count};
      expect_same(&device::masked_select, &cpu::masked_select, {random_bits(random, dtype, sizes), mask},
                  {make_array(dtype, {count})}, &attrs, work_of(mask));
    }
}

TEST(CudaMask, PutsSelectedElementsBack) {
  Random random(3);
  for (const DType dtype : kAllTypes)
    for (const auto& [sizes, more] : shapes_for(dtype)) {
      const Array mask = zeros_and_ones(random, DType::boolean, sizes, 2);
      const std::int64_t count = ones_of(mask) + more;
      if (count < 0) continue;
      const std::vector<Array> inputs = {random_bits(random, dtype, sizes), mask, random_bits(random, dtype, {count})};
      expect_same(&device::masked_scatter, &cpu::masked_scatter, inputs, {make_array(dtype, sizes)}, nullptr, work_of(mask));
      if (sizes.size() == 2)
        expect_same_in_place(&device::masked_scatter, &cpu::masked_scatter, inputs, 0, nullptr, work_of(mask));
    }
}

// There are more tiles than the block that adds up their counts has threads.
TEST(CudaMask, AddsUpTheCountsOfManyTiles) {
  std::vector<std::int64_t> before(701);
  for (std::size_t i = 0; i < 700; ++i) before[i] = static_cast<std::int64_t>(i * i % device::kMaskTile);
  std::vector<std::int64_t> expected(701);
  for (std::size_t i = 0; i < 700; ++i) expected[i + 1] = expected[i] + before[i];
  KernelCall call;
  KernelFault fault;
  const device::Selection s{nullptr, DType::u8, 0, 700, expected[700], before.data(), &fault};
  device::launch(call, &device::add_up_held_kernel, device::Launch{}, s);
  EXPECT_EQ(before, expected);
  EXPECT_EQ(fault.what.load(), nullptr);
}

}  // namespace
}  // namespace tapedeck::testing
