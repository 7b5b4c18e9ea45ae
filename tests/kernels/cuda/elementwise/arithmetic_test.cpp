// Arithmetic for the device, in the emulator, against the CPU kernels, bit for bit.
#include <tapedeck/kernels/cuda/elementwise/list.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/elementwise/add_n.inl>
#include <tapedeck/kernels/cuda/elementwise/arithmetic.inl>

namespace tapedeck::kernels::cpu {
TAPEDECK_CUDA_ELEMENTWISE(TAPEDECK_DECLARE_CPU, TAPEDECK_DECLARE_CPU)
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

class CudaArithmetic : public RandomCalls {};

TEST_F(CudaArithmetic, NumbersEqualCpu) {
  const Case cases[] = {
      TAPEDECK_CASE(add),     TAPEDECK_CASE(sub), TAPEDECK_CASE(mul),  TAPEDECK_CASE(div),       TAPEDECK_CASE(maximum),
      TAPEDECK_CASE(minimum), TAPEDECK_CASE(pow), TAPEDECK_CASE(fmod), TAPEDECK_CASE(remainder), TAPEDECK_CASE(floor_divide),
  };
  for (const Case& c : cases)
    for (const DType t : kNumbers) try_elementwise(c, {t, t, t});
}

TEST_F(CudaArithmetic, GradientsEqualCpu) {
  for (const Case& c : {TAPEDECK_CASE(relu_grad), TAPEDECK_CASE(tanh_grad), TAPEDECK_CASE(sigmoid_grad)})
    for (const DType t : kFloats) try_elementwise(c, {t, t, t});
}

TEST_F(CudaArithmetic, AddcmulEqualsCpu) {
  for (const DType t : kNumbers) try_elementwise(TAPEDECK_CASE(addcmul), {t, t, t, t});
}

TEST_F(CudaArithmetic, EmaEqualsCpu) {
  EmaAttrs attrs;
  attrs.momentum = 0.1;
  for (const DType t : kFloats) try_elementwise(TAPEDECK_CASE(ema), {t, t, t}, &attrs);
}

// More operands than one launch takes, and the result on any of the operands.
TEST_F(CudaArithmetic, SumsOfManyEqualCpu) {
  for (const DType t : kNumbers)
    for (const int terms : {1, 2, 3, 15, 16, 17, 31, 32, 40}) {
      Case c = TAPEDECK_CASE(add_n);
      c.workspace = &kernels::emulated::add_n_workspace;
      Types types(static_cast<std::size_t>(terms) + 1, t);
      try_elementwise(c, types, nullptr, 6, {-5, 5, false});
    }
}

// ---- plain formulas, on rows that the kernels take several elements at a time ----

template <class T>
Buffer row_of(DType dtype, const std::vector<T>& values) {
  Draws draws(1);
  Buffer b = draws.dense(dtype, {static_cast<std::int64_t>(values.size())});
  b.offset = 0;
  b.bytes.assign(values.size() * sizeof(T), 0);
  std::memcpy(b.bytes.data(), values.data(), b.bytes.size());
  b.place();
  return b;
}

TEST(CudaArithmeticFormula, HalvesRoundOnce) {
  std::vector<std::uint16_t> a, b, sum;
  for (int i = 0; i < 23; ++i) {
    const float x = 0.37f * static_cast<float>(i) - 3, y = 100.0f / static_cast<float>(i + 1);
    a.push_back(kernels::to_bf16(x).bits);
    b.push_back(kernels::to_bf16(y).bits);
    sum.push_back(kernels::to_bf16(kernels::to_f32(kernels::Bf16{a.back()}) + kernels::to_f32(kernels::Bf16{b.back()})).bits);
  }
  Operands operands{
      {row_of(DType::bf16, a), row_of(DType::bf16, b)}, {row_of(DType::bf16, std::vector<std::uint16_t>(23))}, {}};
  EXPECT_FALSE(run(&kernels::emulated::add, nullptr, operands, nullptr, 0));
  EXPECT_TRUE(equal_results(operands.outputs[0], row_of(DType::bf16, sum)));
}

TEST(CudaArithmeticFormula, AddsIntegers) {
  std::vector<std::int32_t> a(1000), b(1000), sum(1000);
  for (int i = 0; i < 1000; ++i) a[i] = i, b[i] = 3 * i, sum[i] = 4 * i;
  Operands operands{{row_of(DType::i32, a), row_of(DType::i32, b)}, {row_of(DType::i32, std::vector<std::int32_t>(1000))}, {}};
  EXPECT_FALSE(run(&kernels::emulated::add, nullptr, operands, nullptr, 0));
  EXPECT_TRUE(equal_results(operands.outputs[0], row_of(DType::i32, sum)));
}

TEST(CudaArithmeticFormula, ReportsDivisionByZero) {
  Operands operands{{row_of<std::int64_t>(DType::i64, {7, 8}), row_of<std::int64_t>(DType::i64, {2, 0})},
                    {row_of<std::int64_t>(DType::i64, {0, 0})},
                    {}};
  EXPECT_TRUE(run(&kernels::emulated::div, nullptr, operands, nullptr, 0));
  EXPECT_TRUE(equal_results(operands.outputs[0], row_of<std::int64_t>(DType::i64, {3, 0})));
}

// ---- which walks go several elements at a time ----

std::int64_t packs_of(const Sizes& sizes, const Sizes& a, const Sizes& b, std::size_t offset = 0) {
  alignas(64) static std::uint8_t memory[64];
  View views[2];
  const Sizes* strides[] = {&a, &b};
  for (int k = 0; k < 2; ++k) {
    views[k].data = memory + (k == 1 ? offset : 0);
    views[k].dtype = DType::f32;
    views[k].rank = static_cast<int>(sizes.size());
    for (std::size_t d = 0; d < sizes.size(); ++d) views[k].sizes[d] = sizes[d], views[k].strides[d] = (*strides[k])[d];
  }
  const View* both[] = {&views[0], &views[1]};
  return kernels::emulated::count_packs(kernels::emulated::make_walk<2>(both), 4);
}

TEST(CudaPacks, AreTakenWhereRowsAreContiguousAndAligned) {
  EXPECT_EQ(packs_of({103}, {1}, {1}), 25);         // dense, with a last part of three elements
  EXPECT_EQ(packs_of({3, 8}, {8, 1}, {8, 1}), 6);   // merged into one row
  EXPECT_EQ(packs_of({3, 8}, {8, 1}, {0, 1}), 6);   // a bias
  EXPECT_EQ(packs_of({3, 8}, {8, 1}, {1, 0}), 6);   // one number for each row
  EXPECT_EQ(packs_of({3, 8}, {8, 1}, {0, 0}), 6);   // a scalar
  EXPECT_EQ(packs_of({3, 8}, {12, 1}, {8, 1}), 6);  // gaps between rows
  EXPECT_EQ(packs_of({103}, {1}, {1}, 4), 0);       // not aligned
  EXPECT_EQ(packs_of({3, 7}, {7, 1}, {0, 1}), 0);   // a group would cross the end of a row
  EXPECT_EQ(packs_of({3, 8}, {9, 1}, {8, 1}), 0);   // the second row is not aligned
  EXPECT_EQ(packs_of({3, 8}, {8, 1}, {1, 3}), 0);   // transposed
  EXPECT_EQ(packs_of({103}, {2}, {1}), 0);          // gaps
  EXPECT_EQ(packs_of({}, {}, {}), 0);               // one element
  EXPECT_EQ(packs_of({3}, {1}, {1}), 0);            // fewer elements than a group
}

// A large walk is cut into parts. Here the limit is small: every element of every part is marked once.
TEST(CudaParts, CoverTheWalkOnce) {
  for (const Sizes& sizes : {Sizes{5, 7, 4}, {3, 2, 2, 9}, {2, 60}, {1, 100}})
    for (const std::int64_t most : {1, 2, 5, 8, 30, 59, 1000}) {
      std::vector<float> marks(1000), source(1);
      View views[2];
      for (View& v : views) v.dtype = DType::f32, v.rank = static_cast<int>(sizes.size());
      views[0].data = marks.data(), views[1].data = source.data();
      std::int64_t stride = 1, total = 1;
      for (int d = views[0].rank - 1; d >= 0; --d) {
        const std::int64_t size = sizes[static_cast<std::size_t>(d)];
        for (View& v : views) v.sizes[d] = size;
        views[0].strides[d] = stride, views[1].strides[d] = 0;
        stride = stride * size + 1;  // a gap, so that no dimensions merge
        total *= size;
      }
      const View* both[] = {&views[0], &views[1]};
      const auto walk = kernels::emulated::make_walk<2>(both);
      std::int64_t seen = 0;
      kernels::emulated::for_parts(
          walk,
          [&](const auto& part) {
            EXPECT_TRUE(part.n <= most || part.rank <= 1);
            for (std::int64_t i = 0; i < part.n; ++i, ++seen) {
              std::int64_t at[2];
              kernels::emulated::locate(part, i, at);
              EXPECT_EQ(at[1], 0);
              static_cast<float*>(part.data[0])[at[0]] += 1;
            }
          },
          most);
      EXPECT_EQ(seen, total);
      EXPECT_EQ(std::count(marks.begin(), marks.end(), 1.0f), total);
    }
}

}  // namespace
}  // namespace tapedeck::testing::cuda
