// Copies between views in the emulator. The oracles are the CPU kernels; every byte must be theirs.
#include <tapedeck/tests/kernels/cuda/movement/compare.h>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/movement/copies.inl>

namespace tapedeck::kernels::cpu {
void unstack(const KernelCall& call);
void slice_assign(const KernelCall& call);
void diagonal_assign(const KernelCall& call);
void flip(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace device = kernels::emulated;
namespace cpu = kernels::cpu;

TEST(CudaMovement, CopiesViewsOfAnyStrides) {
  Random random(1);
  for (const DType dtype : kAllTypes)
    for (int k = 0; k < 12; ++k) {
      const Sizes sizes = random_sizes(random, 4, 7);
      const Array x = random_bits(random, dtype, sizes);
      const Array from = k % 3 == 0 ? x : scrambled(random, x);
      const Array to = k % 3 == 1 ? make_array(dtype, sizes) : scrambled(random, x);
      expect_same(&device::copy, &cpu::copy, {from}, {to});
    }
}

TEST(CudaMovement, CopiesDenseBytesAtAnyAlignment) {
  Random random(2);
  for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64})
    for (const std::int64_t n : {1, 3, 16, 33, 1000})
      for (const std::int64_t shift : {0, 1, 4})
        expect_same(&device::copy, &cpu::copy, {shifted(random, dtype, {n}, shift)},
                    {shifted(random, dtype, {n}, n % 2 ? shift : 0)});
}

TEST(CudaMovement, LeavesACopyOfItselfAlone) {
  Random random(12);
  expect_same_in_place(&device::copy, &cpu::copy, {scrambled(random, random_bits(random, DType::f32, {5, 6}))}, 0);
}

TEST(CudaMovement, TransposesThroughTiles) {
  Random random(3);
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64})
    for (const auto& [rows, columns] : {std::pair{32, 32}, {16, 70}, {65, 33}, {17, 16}}) {
      const Array x = random_bits(random, dtype, {columns, rows});
      expect_same(&device::copy, &cpu::copy, {permuted(x, {1, 0})}, {make_array(dtype, {rows, columns})});
      const Array many = random_bits(random, dtype, {3, columns, 2, rows});
      expect_same(&device::copy, &cpu::copy, {permuted(many, {0, 2, 3, 1})}, {make_array(dtype, {3, 2, rows, columns})});
      expect_same(&device::copy, &cpu::copy, {permuted(many, {3, 0, 2, 1})}, {make_array(dtype, {rows, 3, 2, columns})});
    }
}

TEST(CudaMovement, RepeatsBroadcastElements) {
  Random random(4);
  for (const DType dtype : {DType::u8, DType::f32}) {
    expect_same(&device::copy, &cpu::copy, {broadcast(random_bits(random, dtype, {20, 1}), {3, 20, 40})},
                {make_array(dtype, {3, 20, 40})});
    expect_same(&device::copy, &cpu::copy, {broadcast(random_bits(random, dtype, {64}), {5, 64})},
                {make_array(dtype, {5, 64})});
    expect_same(&device::copy, &cpu::copy, {broadcast(random_bits(random, dtype, {}), {100})}, {make_array(dtype, {100})});
  }
}

TEST(CudaMovement, JoinsParts) {
  Random random(5);
  for (const DType dtype : kAllTypes)
    for (int axis = 0; axis < 3; ++axis)
      for (int parts = 1; parts < 5; ++parts) {
        std::vector<Array> in;
        Sizes sizes = {3, 4, 5}, all = sizes;
        all[static_cast<std::size_t>(axis)] = 0;
        for (int k = 0; k < parts; ++k) {
          sizes[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(random() % 9);
          all[static_cast<std::size_t>(axis)] += sizes[static_cast<std::size_t>(axis)];
          const Array part = random_bits(random, dtype, sizes);
          in.push_back(random() % 3 ? part : scrambled(random, part));
        }
        const AxisAttrs attrs{axis};
        const Array out = make_array(dtype, all);
        expect_same(&device::concat, &cpu::concat, in, {random() % 3 ? out : scrambled(random, out)}, &attrs);
      }
}

TEST(CudaMovement, JoinsMorePartsThanOneLaunchTakes) {
  Random random(6);
  std::vector<Array> in;
  for (int k = 0; k < 150; ++k) in.push_back(random_bits(random, DType::f32, {2, 8}));
  for (const std::int64_t axis : {0, 1}) {
    const AxisAttrs attrs{axis};
    expect_same(&device::concat, &cpu::concat, in, {make_array(DType::f32, axis == 0 ? Sizes{300, 8} : Sizes{2, 1200})},
                &attrs);
  }
}

TEST(CudaMovement, LeavesPartsThatLieThereAlone) {
  Random random(7);
  const Array whole = random_bits(random, DType::f32, {5, 4}), second = random_bits(random, DType::f32, {3, 4});
  Array first = whole;
  first.view.sizes[0] = 2;
  const std::vector<std::uint64_t> before(*whole.storage);
  const AxisAttrs attrs{0};
  run(&device::concat, {first, second}, {whole}, &attrs);
  EXPECT_EQ(std::memcmp(whole.storage->data(), before.data(), 32), 0);
  EXPECT_EQ(std::memcmp(whole.address(8), second.view.data, 48), 0);
}

TEST(CudaMovement, CutsASequence) {
  Random random(8);
  for (const DType dtype : kAllTypes)
    for (const auto& [steps, inner] : {std::pair<std::int64_t, std::int64_t>{3, 7}, {70, 4}, {1, 33}, {4, 0}}) {
      const std::vector<Array> out(static_cast<std::size_t>(steps), make_array(dtype, {inner}));
      expect_same(&device::unstack, &cpu::unstack, {random_bits(random, dtype, {steps, inner})}, out);
    }
}

TEST(CudaMovement, ReplacesSlices) {
  Random random(9);
  for (const DType dtype : {DType::boolean, DType::bf16, DType::f32, DType::i64})
    for (const std::int64_t step : {1, 2, 3}) {
      const SliceAttrs attrs{{1, 0}, {7, 5}, step == 1 ? Ints{} : Ints{step, 1}};
      const Array base = random_bits(random, dtype, {7, 5}), piece = random_bits(random, dtype, {(6 + step - 1) / step, 5});
      expect_same(&device::slice_assign, &cpu::slice_assign, {base, scrambled(random, piece)}, {make_array(dtype, {7, 5})},
                  &attrs);
      expect_same_in_place(&device::slice_assign, &cpu::slice_assign, {scrambled(random, base), piece}, 0, &attrs);
    }
  const SliceAttrs nothing{{2}, {2}, {}};
  expect_same(&device::slice_assign, &cpu::slice_assign, {random_bits(random, DType::f32, {5}), make_array(DType::f32, {0})},
              {make_array(DType::f32, {5})}, &nothing);
}

TEST(CudaMovement, ReplacesDiagonals) {
  Random random(10);
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64})
    for (const std::int64_t offset : {-2, 0, 1, 3}) {
      const DiagonalAttrs attrs{offset, 2, 0};
      const std::int64_t length = diagonal_range(3, 4, offset).length;
      const Array base = random_bits(random, dtype, {4, 2, 3}), piece = random_bits(random, dtype, {2, length});
      expect_same(&device::diagonal_assign, &cpu::diagonal_assign, {base, piece}, {make_array(dtype, {4, 2, 3})}, &attrs);
    }
}

TEST(CudaMovement, Flips) {
  Random random(11);
  for (const DType dtype : kAllTypes)
    for (const Ints& axes : {Ints{}, Ints{0}, Ints{2}, Ints{0, 1, 2}, Ints{1, 2}}) {
      const FlipAttrs attrs{axes};
      const Array x = random_bits(random, dtype, {2, 17, 20});
      expect_same(&device::flip, &cpu::flip, {x}, {make_array(dtype, {2, 17, 20})}, &attrs);
      expect_same(&device::flip, &cpu::flip, {permuted(x, {2, 1, 0})}, {make_array(dtype, {20, 17, 2})}, &attrs);
    }
}

}  // namespace
}  // namespace tapedeck::testing
