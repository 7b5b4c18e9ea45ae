// Reads at indices in the emulator. The oracles are the CPU kernels; every byte must be theirs.
#include <tapedeck/tests/kernels/cuda/movement/compare.h>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/movement/select.inl>

namespace tapedeck::kernels::cpu {
void gather(const KernelCall& call);
void index_select(const KernelCall& call);
void embedding(const KernelCall& call);
void gather_nd(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace device = kernels::emulated;
namespace cpu = kernels::cpu;

const std::vector<DType> kIndexTypes = {DType::i32, DType::i64};

TEST(CudaMovement, ReadsRowsOfATable) {
  Random random(1);
  for (const DType dtype : kAllTypes)
    for (const DType ids : kIndexTypes)
      for (const std::int64_t width : {0, 1, 5, 8, 48}) {
        const Array table = random_bits(random, dtype, {9, width});
        expect_same(&device::embedding, &cpu::embedding, {table, random_indices(random, ids, {3, 7}, -9, 9)},
                    {make_array(dtype, {3, 7, width})});
        expect_same(&device::embedding, &cpu::embedding, {table, random_indices(random, ids, {}, 0, 9)},
                    {make_array(dtype, {width})});
      }
}

TEST(CudaMovement, SelectsSlices) {
  Random random(2);
  for (const DType dtype : kAllTypes)
    for (int axis = 0; axis < 3; ++axis)
      for (const std::int64_t m : {0, 1, 11}) {
        Sizes sizes = {3, 4, 6};
        const Array x = random_bits(random, dtype, sizes);
        const std::int64_t n = sizes[static_cast<std::size_t>(axis)];
        sizes[static_cast<std::size_t>(axis)] = m;
        const AxisAttrs attrs{axis};
        expect_same(&device::index_select, &cpu::index_select, {x, random_indices(random, DType::i64, {m}, -n, n)},
                    {make_array(dtype, sizes)}, &attrs);
      }
}

TEST(CudaMovement, Gathers) {
  Random random(3);
  for (const DType dtype : kAllTypes)
    for (const DType ids : kIndexTypes) {
      const Array x = random_bits(random, dtype, {3, 5, 4});
      for (const auto& [axis, sizes] : {std::pair<int, Sizes>{0, {7, 4, 4}}, {1, {2, 9, 3}}, {2, {3, 5, 1}}, {1, {3, 0, 4}}}) {
        const std::int64_t n = x.view.sizes[axis];
        const AxisAttrs attrs{axis};
        expect_same(&device::gather, &cpu::gather, {x, random_indices(random, ids, sizes, -n, n)}, {make_array(dtype, sizes)},
                    &attrs);
      }
    }
}

TEST(CudaMovement, GathersTuples) {
  Random random(4);
  for (const DType dtype : kAllTypes)
    for (const DType ids : kIndexTypes) {
      const auto check = [&](const Sizes& x, const Sizes& indices, const Sizes& out, std::int64_t batch) {
        const GatherNdAttrs attrs{batch};
        expect_same(&device::gather_nd, &cpu::gather_nd,
                    {random_bits(random, dtype, x), random_indices(random, ids, indices, -3, 3)}, {make_array(dtype, out)},
                    &attrs);
      };
      check({3, 4, 16}, {6, 2}, {6, 16}, 0);
      check({3, 4}, {2, 3, 2}, {2, 3}, 0);
      check({2, 3, 5}, {2, 5, 1}, {2, 5, 5}, 1);
      check({3, 4}, {2, 0}, {2, 3, 4}, 0);
      check({3, 4}, {0, 1}, {0, 4}, 0);
    }
}

TEST(CudaMovement, ReportsIndicesOutOfRangeAndWritesZeros) {
  Random random(5);
  const Array x = random_bits(random, DType::f32, {4, 8}), ids = array_of(DType::i64, {4}, {1, 4, -4, 0});
  expect_same(&device::embedding, &cpu::embedding, {x, ids}, {make_array(DType::f32, {4, 8})});
  const AxisAttrs axis{0};
  const Array places = array_of(DType::i32, {2, 3}, {0, -5, 3, 1, 1, 1});
  expect_same(&device::gather, &cpu::gather, {x, places}, {make_array(DType::f32, {2, 3})}, &axis);
  const GatherNdAttrs attrs;
  const Array tuples = array_of(DType::i64, {3, 2}, {0, 7, -9, 2, 3, -8});
  expect_same(&device::gather_nd, &cpu::gather_nd, {x, tuples}, {make_array(DType::f32, {3})}, &attrs);
}

TEST(CudaMovement, MarksLabels) {
  Random random(6);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const DType ids : kIndexTypes) {
      const OneHotAttrs attrs{5, dtype};
      expect_same(&device::one_hot, &cpu::one_hot, {random_indices(random, ids, {3, 4}, 0, 5)}, {make_array(dtype, {3, 4, 5})},
                  &attrs);
      expect_same(&device::one_hot, &cpu::one_hot, {array_of(ids, {3}, {4, -1, 0})}, {make_array(dtype, {3, 5})}, &attrs);
    }
}

}  // namespace
}  // namespace tapedeck::testing
