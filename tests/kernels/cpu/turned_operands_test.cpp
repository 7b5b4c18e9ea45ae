// Tests elementwise kernels on operands whose neighbours in memory lie in different rows, such as transposed matrices. The
// oracle runs the same kernel on dense copies.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

// An array of these sizes whose dimensions lie in memory in the given order, the last one innermost. The rows in memory have a
// gap of `gap` elements.
Array laid_out(Random& random, DType dtype, const Sizes& sizes, const std::vector<int>& order, std::int64_t gap) {
  Sizes in_memory;
  for (int d : order) in_memory.push_back(sizes[d]);
  in_memory.back() += gap;
  Array a = random_array(random, dtype, in_memory, -4, 4);
  a.view.sizes[a.view.rank - 1] -= gap;
  std::vector<int> axes(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) axes[order[i]] = static_cast<int>(i);
  return permuted(a, axes);
}

void expect_bits_of_dense(Kernel kernel, DType result, const std::vector<Array>& operands) {
  const Sizes sizes(operands[0].view.sizes, operands[0].view.sizes + operands[0].view.rank);
  std::vector<Array> copies;
  for (const Array& a : operands) copies.push_back(dense_copy(a));
  const Array expected = make_array(result, sizes);
  run(kernel, copies, {expected});
  for (int threads : {1, 3}) {
    const Array out = make_array(result, sizes);
    with_threads(threads, [&] { run(kernel, operands, {out}); });
    EXPECT_TRUE(same_bits(out, expected)) << dtype_name(result) << ", " << threads << " threads, rows of " << sizes.back();
  }
}

TEST(TurnedOperands, GiveTheBitsOfDenseOnes) {
  Random random(3);
  const std::vector<Sizes> shapes = {{8, 8}, {33, 70}, {16, 300}, {700, 9}, {300, 1100}, {7, 40}};
  for (const Sizes& sizes : shapes)
    for (DType dtype : {DType::f32, DType::f64, DType::u8, DType::i64})
      for (std::int64_t gap : {0, 3}) {
        const Array dense = random_array(random, dtype, sizes, -4, 4);
        const Array turned = laid_out(random, dtype, sizes, {1, 0}, gap);
        expect_bits_of_dense(cpu::sub, dtype, {dense, turned});
        expect_bits_of_dense(cpu::sub, dtype, {turned, dense});
        expect_bits_of_dense(cpu::sub, dtype, {turned, laid_out(random, dtype, sizes, {1, 0}, gap + 1)});
        expect_bits_of_dense(cpu::sub, dtype, {turned, broadcast(random_array(random, dtype, {sizes[1]}), sizes)});
        expect_bits_of_dense(cpu::greater, DType::boolean, {dense, turned});
      }
}

TEST(TurnedOperands, OfThreeDimensionsAndSeveralTypes) {
  Random random(4);
  const Sizes sizes = {3, 40, 270};
  std::vector<int> order = {0, 1, 2};
  do {
    const Array mask = laid_out(random, DType::boolean, sizes, order, 0);
    const Array chosen = laid_out(random, DType::f32, sizes, order, 5);
    const Array other = laid_out(random, DType::f32, sizes, {2, 0, 1}, 0);
    expect_bits_of_dense(cpu::where, DType::f32, {mask, chosen, other});
    expect_bits_of_dense(cpu::exp, DType::f32, {chosen});
  } while (std::next_permutation(order.begin(), order.end()));
}

// The last dimension of the operand runs backwards.
TEST(TurnedOperands, WithANegativeStride) {
  Random random(6);
  const Sizes sizes = {20, 300};
  const Array dense = random_array(random, DType::f32, sizes, -4, 4);
  Array turned = laid_out(random, DType::f32, sizes, {1, 0}, 0);
  turned.view.data = turned.view.as<float>() + 299 * turned.view.strides[1];
  turned.view.strides[1] = -turned.view.strides[1];
  expect_bits_of_dense(cpu::sub, DType::f32, {dense, turned});
}

// The result lies on the dense operand, as an op in place does it.
TEST(TurnedOperands, BesideAnOperandInPlace) {
  Random random(8);
  const Sizes sizes = {50, 600};
  const Array dense = random_array(random, DType::f32, sizes, -4, 4), turned = laid_out(random, DType::f32, sizes, {1, 0}, 0);
  const Array expected = make_array(DType::f32, sizes);
  run(cpu::mul, {dense, dense_copy(turned)}, {expected});
  run(cpu::mul, {dense, turned}, {dense});
  EXPECT_TRUE(same_bits(dense, expected));
}

}  // namespace
}  // namespace tapedeck::testing
