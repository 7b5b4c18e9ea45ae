// softmax, log_softmax and their gradients of the device, in the emulator, against the CPU kernels.
#include <tapedeck/kernels/cuda/normalization/softmax.inl>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/tests/kernels/cuda/compare.h>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

constexpr unsigned kSoftmaxSeed = 42;

void check_softmax(Random& random, DType dtype, const Sizes& sizes, int axis) {
  SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " axis " << axis << " of "
                                    << sizes[static_cast<std::size_t>(axis)]);
  const AxisAttrs attrs{axis};
  const double n = static_cast<double>(sizes[static_cast<std::size_t>(axis)]);
  const auto made = [&] { return make_array(dtype, sizes); };
  const Array x = random_numbers(random, dtype, sizes, -20, 20), dy = random_numbers(random, dtype, sizes, -1, 1);
  const Array y = made(), log_y = made();
  compare(emulated::softmax, nullptr, cpu::softmax, 0, {{x}, {y}, &attrs});
  compare(emulated::log_softmax, nullptr, cpu::log_softmax, 0, {{x}, {log_y}, &attrs}, {40});
  compare(emulated::softmax_grad, nullptr, cpu::softmax_grad, 0, {{y, dy}, {made()}, &attrs});
  compare(emulated::log_softmax_grad, nullptr, cpu::log_softmax_grad, 0, {{log_y, dy}, {made()}, &attrs}, {n});
}

TEST(CudaSoftmax, RowsOfEverySizeAndType) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSoftmaxSeed);
  Random random(kSoftmaxSeed);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::int64_t n : {0, 1, 31, 33, 1000, 1025}) check_softmax(random, dtype, {3, n}, 1);
  check_softmax(random, DType::f32, {0, 5}, 1);
}

// Rows that begin at any distance from an aligned address, and rows that are too long for the shared memory.
TEST(CudaSoftmax, RowsByPacks) {
  Random random(kSoftmaxSeed);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const std::int64_t n : {32, 129, 1024, 2050, 9003}) check_softmax(random, dtype, {5, n}, 1);
  check_softmax(random, DType::f32, {1, 60001}, 1);
}

TEST(CudaSoftmax, EveryAxis) {
  Random random(kSoftmaxSeed);
  for (int axis = 0; axis < 3; ++axis) {
    check_softmax(random, DType::f32, {3, 17, 5}, axis);
    check_softmax(random, DType::f64, {3, 17, 5}, axis);
  }
  check_softmax(random, DType::f32, {2, 1100, 3}, 1);
  check_softmax(random, DType::f32, {5, 7, 1000}, 1);  // a thread for each row
  check_softmax(random, DType::bf16, {33, 20}, 0);
}

TEST(CudaSoftmax, HandlesInfinityAndNan) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const AxisAttrs attrs{1};
  const Array x = array_of(DType::f32, {5, 3}, {-inf, 1, 2, -inf, -inf, -inf, inf, 1, 2, nan, 1, 2, 1e4, 1e4, -1e4}),
              y = make_array(DType::f32, {5, 3});
  compare(emulated::softmax, nullptr, cpu::softmax, 0, {{x}, {y}, &attrs});
  EXPECT_EQ(y.get(0), 0);
  compare(emulated::log_softmax, nullptr, cpu::log_softmax, 0, {{x}, {y}, &attrs});
}

TEST(CudaSoftmax, HandlesInfinityAndNanInPackedRows) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const AxisAttrs attrs{1};
  Random random(kSoftmaxSeed);
  const Array x = random_numbers(random, DType::f32, {5, 701}), y = make_array(DType::f32, {5, 701});
  for (std::int64_t i = 0; i < 701; ++i) x.set(i, i == 650 ? 3 : -inf);
  for (std::int64_t i = 0; i < 701; ++i) x.set(701 + i, -inf);
  x.set(2 * 701 + 333, inf);
  x.set(3 * 701 + 5, nan);
  x.set(4 * 701 + 1, -inf);
  compare(emulated::softmax, nullptr, cpu::softmax, 0, {{x}, {y}, &attrs});
  EXPECT_EQ(y.get(650), 1);
  EXPECT_EQ(y.get(4 * 701 + 1), 0);
  compare(emulated::log_softmax, nullptr, cpu::log_softmax, 0, {{x}, {y}, &attrs});
}

TEST(CudaSoftmax, GradientMayOverwriteTheGradientOfItsResult) {
  Random random(kSoftmaxSeed);
  for (const std::int64_t n : {40, 1300}) {
    const AxisAttrs attrs{1};
    const Array y = random_numbers(random, DType::f32, {3, n}, 0, 1), dy = random_numbers(random, DType::f32, {3, n}),
                dx = make_array(DType::f32, {3, n});
    run(emulated::softmax_grad, {y, dy}, {dx}, &attrs);
    run(emulated::softmax_grad, {y, dy}, {dy}, &attrs);
    EXPECT_TRUE(same_bits(dx, dy));
  }
}

}  // namespace
}  // namespace tapedeck::testing
