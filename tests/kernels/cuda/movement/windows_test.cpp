// Pads, roll and the triangles in the emulator. The oracles are the CPU kernels; every byte must be theirs.
#include <tapedeck/tests/kernels/cuda/movement/compare.h>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/movement/windows.inl>

namespace tapedeck::kernels::cpu {
void pad_constant(const KernelCall& call);
void pad_mode(const KernelCall& call);
void pad_mode_grad(const KernelCall& call);
void roll(const KernelCall& call);
void tril(const KernelCall& call);
void triu(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace device = kernels::emulated;
namespace cpu = kernels::cpu;

Sizes padded(Sizes sizes, const Ints& before, const Ints& after) {
  for (int d = 0; d < before.size; ++d) sizes[static_cast<std::size_t>(d)] += before[d] + after[d];
  return sizes;
}

struct Pad {
  Sizes sizes;
  Ints before, after;
};

const std::vector<Pad> kPads = {
    {{3, 4}, {1, 0}, {0, 2}},           {{2, 0, 3}, {0, 1, 2}, {1, 0, 0}},           {{}, {}, {}},      {{5}, {0}, {0}},
    {{2, 3, 8}, {1, 1, 8}, {0, 2, 16}}, {{2, 5, 6, 32}, {0, 0, 1, 4}, {0, 0, 1, 4}}, {{64}, {16}, {32}}};

TEST(CudaMovement, PadsWithZeros) {
  Random random(1);
  for (const DType dtype : kAllTypes)
    for (const Pad& p : kPads) {
      const PadAttrs attrs{p.before, p.after};
      const Array x = random_bits(random, dtype, p.sizes), y = make_array(dtype, padded(p.sizes, p.before, p.after));
      expect_same(&device::pad, &cpu::pad, {x}, {y}, &attrs);
      if (x.numel() > 0) expect_same(&device::pad, &cpu::pad, {scrambled(random, x)}, {scrambled(random, y)}, &attrs);
    }
}

TEST(CudaMovement, PadsAroundAnOperandThatLiesThere) {
  Random random(2);
  const Array whole = random_bits(random, DType::f32, {4, 8});
  Array inside = whole;
  inside.view.sizes[0] = 2;
  inside.view.sizes[1] = 4;
  inside.view.data = whole.address(8 + 4);
  const Array kept = dense_copy(inside);
  const PadAttrs attrs{{1, 4}, {1, 0}};
  run(&device::pad, {inside}, {whole}, &attrs);
  EXPECT_TRUE(same_bits(inside, kept));
  const Array expected = make_array(DType::f32, {4, 8});
  run(&cpu::pad, {kept}, {expected}, &attrs);
  EXPECT_TRUE(same_bits(whole, expected));
}

TEST(CudaMovement, PadsWithAConstant) {
  Random random(3);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const double value : {0.0, 2.5, -1.0, 1e20})
      for (const Pad& p : kPads) {
        const PadConstantAttrs attrs{p.before, p.after, value};
        expect_same(&device::pad_constant, &cpu::pad_constant, {random_bits(random, dtype, p.sizes)},
                    {make_array(dtype, padded(p.sizes, p.before, p.after))}, &attrs);
      }
}

struct Repeat {
  const char* mode;
  Pad pad;
};

const std::vector<Repeat> kRepeats = {{"reflect", {{3, 4}, {2, 1}, {1, 3}}},
                                      {"replicate", {{3, 4}, {4, 1}, {0, 6}}},
                                      {"circular", {{2, 3, 4}, {2, 0, 1}, {1, 3, 4}}},
                                      {"reflect", {{0, 3}, {0, 1}, {0, 2}}},
                                      {"replicate", {{1}, {3}, {2}}},
                                      {"reflect", {{5}, {4}, {4}}},
                                      {"reflect", {{}, {}, {}}},
                                      {"replicate", {{2, 3, 2, 5}, {1, 0, 2, 3}, {0, 2, 1, 3}}}};

TEST(CudaMovement, PadsWithRepeatedElements) {
  Random random(4);
  for (const DType dtype : kAllTypes)
    for (const auto& [mode, p] : kRepeats) {
      const PadModeAttrs attrs{p.before, p.after, mode};
      const Array x = random_bits(random, dtype, p.sizes);
      expect_same(&device::pad_mode, &cpu::pad_mode, {x.numel() ? scrambled(random, x) : x},
                  {make_array(dtype, padded(p.sizes, p.before, p.after))}, &attrs);
    }
}

TEST(CudaMovement, AddsUpRepeatedElements) {
  Random random(5);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [mode, p] : kRepeats) {
      const PadModeAttrs attrs{p.before, p.after, mode};
      expect_same(&device::pad_mode_grad, &cpu::pad_mode_grad,
                  {random_array(random, dtype, padded(p.sizes, p.before, p.after))}, {make_array(dtype, p.sizes)}, &attrs);
    }
}

TEST(CudaMovement, Rolls) {
  Random random(6);
  const RollAttrs cases[] = {{{1}, {1}}, {{1, 2}, {0, 2}}, {{}, {}}, {{0, 3}, {0, 1}}};
  for (const DType dtype : kAllTypes)
    for (const RollAttrs& attrs : cases) {
      const Array x = random_bits(random, dtype, {2, 5, 3});
      expect_same(&device::roll, &cpu::roll, {scrambled(random, x)}, {make_array(dtype, {2, 5, 3})}, &attrs);
    }
}

TEST(CudaMovement, KeepsTriangles) {
  Random random(7);
  for (const DType dtype : kAllTypes)
    for (const Sizes& sizes : {Sizes{4, 4}, {2, 3, 5}, {5, 2}, {1, 7}, {2, 0, 3}, {3, 0}})
      for (const std::int64_t diagonal : {-9, -2, 0, 1, 9}) {
        const TriangleAttrs attrs{diagonal};
        const Array x = random_bits(random, dtype, sizes);
        expect_same(&device::tril, &cpu::tril, {x}, {make_array(dtype, sizes)}, &attrs);
        expect_same(&device::triu, &cpu::triu, {x}, {make_array(dtype, sizes)}, &attrs);
        expect_same_in_place(&device::triu, &cpu::triu, {x}, 0, &attrs);
      }
}

}  // namespace
}  // namespace tapedeck::testing
