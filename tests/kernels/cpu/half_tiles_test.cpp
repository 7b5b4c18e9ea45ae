// Tests run_elementwise_in_f32 against run_in_f32, which converts whole operands: both must give the same bits.
#include <tapedeck/tests/kernels/halves.h>
#include <tapedeck/tests/kernels/matrices.h>

#include <tapedeck/kernels/cpu/elementwise/half_tiles.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

namespace tapedeck::testing {
namespace {

void run_in_halves(Kernel runner, Kernel kernel, const std::vector<Array>& in, const Array& out) {
  std::vector<View> views;
  for (const Array& a : in) views.push_back(a.view);
  std::vector<char> workspace(static_cast<std::size_t>(in.size() + 1) * static_cast<std::size_t>(out.numel() * 4 + 64) + 64);
  KernelFault fault;
  KernelCall call;
  call.inputs = views.data(), call.n_inputs = static_cast<std::int32_t>(in.size());
  call.outputs = &out.view, call.n_outputs = 1;
  call.fault = &fault, call.f32_kernel = kernel;
  if (runner == kernels::run_in_f32) call.workspace = workspace.data(), call.workspace_bytes = workspace.size();
  runner(call);
  EXPECT_EQ(fault.what.load(), nullptr);
}

void expect_same_halves(Kernel kernel, const std::vector<Array>& in, const Sizes& sizes, DType result) {
  const Array whole = make_array(result, sizes), tiles = make_array(result, sizes);
  run_in_halves(kernels::run_in_f32, kernel, in, whole);
  for (const int threads : {1, 2}) {
    with_threads(threads, [&] { run_in_halves(kernels::cpu::run_elementwise_in_f32, kernel, in, tiles); });
    EXPECT_TRUE(same_bits(whole, tiles));
  }
}

TEST(HalfTiles, HaveTheBitsOfWholeOperands) {
  Random random(71);
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const Sizes& sizes : {Sizes{}, Sizes{0, 3}, Sizes{5}, Sizes{1, 1024}, Sizes{3, 1025}, Sizes{70, 3000}}) {
      const Array x = random_halves(random, dtype, sizes), y = random_halves(random, dtype, sizes);
      expect_same_halves(kernels::cpu::tanh, {x}, sizes, dtype);
      expect_same_halves(kernels::cpu::tanh_grad, {x, y}, sizes, dtype);
      expect_same_halves(kernels::cpu::less, {x, y}, sizes, DType::boolean);
    }
}

TEST(HalfTiles, TakeAnyStridesAndOperandsOfOtherTypes) {
  Random random(72);
  const Sizes sizes = {40, 300};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Array x = random_halves(random, dtype, sizes), row = broadcast(random_halves(random, dtype, {300}), sizes),
                column = broadcast(random_halves(random, dtype, {40, 1}), sizes),
                one = broadcast(random_halves(random, dtype, {}), sizes);
    for (const Array& left : {x, column_major(x), scrambled(random, x)})
      for (const Array& right : {row, column, one, column_major(x)})
        expect_same_halves(kernels::cpu::mul, {left, right}, sizes, dtype);
    const Array wide = make_array(DType::f32, sizes), mask = make_array(DType::boolean, sizes);
    for (std::int64_t i = 0; i < wide.numel(); ++i)
      wide.set(i, 0.5 * static_cast<double>(i % 7)), mask.set(i, static_cast<double>(i % 3 == 0));
    expect_same_halves(kernels::cpu::where, {mask, x, column}, sizes, dtype);
    expect_same_halves(kernels::cpu::add, {x, wide}, sizes, DType::f32);
  }
}

TEST(HalfTiles, WriteOverAnOperand) {
  Random random(73);
  const Sizes sizes = {3, 2000};
  const Array x = random_halves(random, DType::bf16, sizes), y = random_halves(random, DType::bf16, sizes),
              sum = make_array(DType::bf16, sizes);
  run_in_halves(kernels::run_in_f32, kernels::cpu::add, {x, y}, sum);
  run_in_halves(kernels::cpu::run_elementwise_in_f32, kernels::cpu::add, {x, y}, x);
  EXPECT_TRUE(same_bits(x, sum));
}

}  // namespace
}  // namespace tapedeck::testing
