// Our own product kernels, in the emulator: every type, shape and layout. The oracle is a loop over f64 numbers, and for f32
// also the CPU kernel.
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/tests/kernels/cuda/products/operands.h>
#include <tapedeck/kernels/cuda/products/matmul.inl>

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace tapedeck::kernels {

namespace cpu {
void linear(const KernelCall& call);
}

namespace {

using Sizes = std::vector<std::int64_t>;

const std::vector<DType> kTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64};

// cuBLASLt does not start here, whatever is installed.
class CudaProducts : public ::testing::Test {
 protected:
  CudaProducts() {
    fake_.cublasLtCreate = [](cuda::LtHandle*) -> cuda::LtStatus { return 1; };
    scope_.emplace(fake_);
    cuda::forget_products();
  }
  ~CudaProducts() override {
    scope_.reset();
    cuda::forget_products();
  }

  Operands numbers_;
  KernelFault fault_;

 private:
  cuda::LtApi fake_;
  std::optional<cuda::ScopedFake<cuda::LtApi>> scope_;
};

// The distance that a result may have from the exact one, for an inner size k and numbers of up to 1.
double tolerance(DType dtype, std::int64_t k) {
  const double sums = static_cast<double>(k + 2);
  switch (dtype) {
    case DType::f32:
      return 1e-7 * sums;
    case DType::f64:
      return 2e-16 * sums;
    case DType::f16:
      return 1e-7 * sums + 5e-4 * std::sqrt(sums);
    case DType::bf16:
      return 1e-7 * sums + 4e-3 * std::sqrt(sums);
    default:
      return 0;
  }
}

// Element [row, col] of matrix number `index` of x, where the batch of x is broadcast to that of `out`.
double matrix_element(const Operand& x, const View& out, std::int64_t index, std::int64_t row, std::int64_t col) {
  std::int64_t offset = row * x.view.strides[x.view.rank - 2] + col * x.view.strides[x.view.rank - 1];
  for (int d = out.rank - 3; d >= 0; --d) {
    const int own = d - (out.rank - x.view.rank);
    const std::int64_t i = index % out.sizes[d];
    index /= out.sizes[d];
    if (own >= 0 && x.view.sizes[own] != 1) offset += i * x.view.strides[own];
  }
  return x.at(offset);
}

// Compares out with old + a b (old may be null), element by element.
void expect_product(const Operand& a, const Operand& b, const Operand* old, const Operand& out) {
  const View& c = out.view;
  const std::int64_t m = c.sizes[c.rank - 2], n = c.sizes[c.rank - 1], k = a.view.sizes[a.view.rank - 1];
  for (std::int64_t i = 0; i < c.numel(); ++i) {
    const std::int64_t index = i / (m * n), row = i / n % m, col = i % n;
    double sum = old ? matrix_element(*old, c, index, row, col) : 0;
    for (std::int64_t q = 0; q < k; ++q) sum += matrix_element(a, c, index, row, q) * matrix_element(b, c, index, q, col);
    ASSERT_NEAR(out.at(i), sum, tolerance(c.dtype, k)) << dtype_name(c.dtype) << " element " << i << " of " << m << "x" << n;
  }
}

struct Case {
  Sizes a, b, out;
};

TEST_F(CudaProducts, EveryTypeInEveryLayout) {
  for (const DType dtype : kTypes)
    for (int layout = 0; layout < 4; ++layout) {
      const Sizes left = {37, 21}, right = {21, 70};
      const Operand a = layout & 1 ? numbers_.turned(dtype, left) : numbers_.make(dtype, left);
      const Operand b = layout & 2 ? numbers_.turned(dtype, right) : numbers_.make(dtype, right);
      const Operand out = numbers_.make(dtype, {37, 70});
      call_kernel(&emulated::matmul, {a.view, b.view}, {out.view}, fault_);
      expect_product(a, b, nullptr, out);
    }
  EXPECT_EQ(fault_.what.load(), nullptr);
}

TEST_F(CudaProducts, BatchesBroadcast) {
  const std::vector<Case> cases = {
      {{2, 3, 4}, {4, 5}, {2, 3, 5}},
      {{2, 1, 3, 4}, {5, 4, 2}, {2, 5, 3, 2}},
      {{3, 4}, {2, 4, 5}, {2, 3, 5}},
      {{1, 3, 4}, {1, 4, 5}, {1, 3, 5}},
      {{2, 3, 1, 4}, {2, 3, 4, 5}, {2, 3, 1, 5}},
      {{3, 66, 2}, {3, 2, 65}, {3, 66, 65}},
      {{2, 1, 2, 3}, {1, 3, 3, 1}, {2, 3, 2, 1}},
      {{5, 1}, {1, 7}, {5, 7}},
  };
  for (const Case& c : cases)
    for (const DType dtype : {DType::f32, DType::i64}) {
      const Operand a = numbers_.make(dtype, c.a), b = numbers_.make(dtype, c.b), out = numbers_.make(dtype, c.out);
      call_kernel(&emulated::matmul, {a.view, b.view}, {out.view}, fault_);
      expect_product(a, b, nullptr, out);
    }
}

TEST_F(CudaProducts, StridesWithGapsAndOtherOrders) {
  const Operand a = numbers_.make(DType::f32, {2, 3, 9, 5}, {7, 200, 20, 1});
  const Operand b = numbers_.make(DType::f32, {2, 3, 5, 11}, {300, 80, 1, 7});
  const Operand out = numbers_.make(DType::f32, {2, 3, 9, 11});
  call_kernel(&emulated::matmul, {a.view, b.view}, {out.view}, fault_);
  expect_product(a, b, nullptr, out);
}

TEST_F(CudaProducts, RowsAndColumns) {
  struct Case {
    DType dtype;
    std::int64_t k, wide;
  };
  std::vector<Case> cases = {{DType::f32, 1, 33}, {DType::f32, 31, 1}, {DType::f32, 8, 40}};
  for (const DType dtype : kTypes) cases.push_back({dtype, 70, 5});
  for (const Case& c : cases)
    for (const bool turned : {false, true}) {
      const auto make = [&](const Sizes& sizes) {
        return turned ? numbers_.turned(c.dtype, sizes) : numbers_.make(c.dtype, sizes);
      };
      const Operand row = numbers_.make(c.dtype, {1, c.k}), right = make({c.k, c.wide}),
                    out = numbers_.make(c.dtype, {1, c.wide});
      call_kernel(&emulated::matmul, {row.view, right.view}, {out.view}, fault_);
      expect_product(row, right, nullptr, out);
      const Operand left = make({c.wide, c.k}), col = numbers_.make(c.dtype, {c.k, 1}),
                    result = numbers_.make(c.dtype, {c.wide, 1});
      call_kernel(&emulated::matmul, {left.view, col.view}, {result.view}, fault_);
      expect_product(left, col, nullptr, result);
    }
  // A batch of rows, each with a matrix of its own.
  const Operand rows = numbers_.make(DType::f32, {3, 1, 9}), matrices = numbers_.turned(DType::f32, {3, 9, 4});
  const Operand out = numbers_.make(DType::f32, {3, 1, 4});
  call_kernel(&emulated::matmul, {rows.view, matrices.view}, {out.view}, fault_);
  expect_product(rows, matrices, nullptr, out);
}

TEST_F(CudaProducts, LargeTiles) {
  // 128 tiles of 128 x 128 elements are 128 matrices, of which only a few are as large as this.
  const Operand a = numbers_.make(DType::f32, {128, 9, 5}), b = numbers_.turned(DType::f32, {128, 5, 6});
  const Operand out = numbers_.make(DType::f32, {128, 9, 6});
  call_kernel(&emulated::matmul, {a.view, b.view}, {out.view}, fault_);
  expect_product(a, b, nullptr, out);

  Product p = matmul_product(a.view, b.view, out.view);
  const Operand left = numbers_.make(DType::bf16, {140, 19}), right = numbers_.turned(DType::bf16, {19, 133});
  const Operand result = numbers_.make(DType::bf16, {140, 133});
  p = matmul_product(left.view, right.view, result.view);
  KernelCall call;
  call.fault = &fault_;
  emulated::launch(call, &emulated::multiply_tiles<float, 128, 8>, {.blocks = 4}, p);
  expect_product(left, right, nullptr, result);
}

TEST_F(CudaProducts, EmptySizes) {
  const Operand a = numbers_.make(DType::f32, {3, 0}), b = numbers_.make(DType::f32, {0, 2}),
                out = numbers_.make(DType::f32, {3, 2});
  call_kernel(&emulated::matmul, {a.view, b.view}, {out.view}, fault_);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(out.at(i), 0);

  const Operand tall = numbers_.make(DType::f32, {0, 3}), wide = numbers_.make(DType::f32, {3, 2});
  Operand none = numbers_.make(DType::f32, {0, 2});
  none.view.data = nullptr;
  call_kernel(&emulated::matmul, {tall.view, wide.view}, {none.view}, fault_);
  EXPECT_EQ(fault_.what.load(), nullptr);
}

TEST_F(CudaProducts, AddsToASum) {
  for (const DType dtype : kTypes) {
    const Operand a = numbers_.make(dtype, {2, 9, 12}), b = numbers_.make(dtype, {12, 10});
    const Operand old = numbers_.turned(dtype, {2, 9, 10}), out = numbers_.make(dtype, {2, 9, 10});
    call_kernel(&emulated::addmm, {old.view, a.view, b.view}, {out.view}, fault_);
    expect_product(a, b, &old, out);
  }
}

// addmm is to have the bits of matmul and then add, in place too.
TEST_F(CudaProducts, AddsAsAddDoes) {
  for (const Sizes& sizes : {Sizes{9, 12, 10}, Sizes{1, 70, 5}, Sizes{5, 70, 1}}) {
    const std::int64_t m = sizes[0], k = sizes[1], n = sizes[2];
    const Operand a = numbers_.make(DType::f32, {m, k}), b = numbers_.make(DType::f32, {k, n});
    const Operand old = numbers_.make(DType::f32, {m, n}), product = numbers_.make(DType::f32, {m, n});
    call_kernel(&emulated::matmul, {a.view, b.view}, {product.view}, fault_);
    std::vector<float> wanted;
    for (std::int64_t i = 0; i < m * n; ++i)
      wanted.push_back(static_cast<float>(old.at(i)) + static_cast<float>(product.at(i)));
    call_kernel(&emulated::addmm, {old.view, a.view, b.view}, {old.view}, fault_);
    for (std::int64_t i = 0; i < m * n; ++i) ASSERT_EQ(static_cast<float>(old.at(i)), wanted[static_cast<std::size_t>(i)]);
  }
}

// One row for each matrix of the batch: the product joins the rows of the batch, but a sum that lies otherwise cannot be
// joined.
TEST_F(CudaProducts, AddsAsAddDoesWhereTheSumLiesOtherwise) {
  const Operand a = numbers_.make(DType::f32, {3, 1, 70}), b = numbers_.make(DType::f32, {70, 5});
  const Operand old = numbers_.make(DType::f32, {3, 1, 5}, {1, 1, 3}), product = numbers_.make(DType::f32, {3, 1, 5});
  const Operand out = numbers_.make(DType::f32, {3, 1, 5});
  call_kernel(&emulated::matmul, {a.view, b.view}, {product.view}, fault_);
  call_kernel(&emulated::addmm, {old.view, a.view, b.view}, {out.view}, fault_);
  for (std::int64_t i = 0; i < 15; ++i)
    EXPECT_EQ(static_cast<float>(out.at(i)), static_cast<float>(old.element(i)) + static_cast<float>(product.at(i)));
}

TEST_F(CudaProducts, LinearLayers) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Operand w = numbers_.turned(dtype, {30, 41}), bias = numbers_.make(dtype, {41}, {3});
    std::vector<Operand> xs;
    xs.push_back(numbers_.make(dtype, {30}));
    xs.push_back(numbers_.make(dtype, {7, 30}));
    xs.push_back(numbers_.make(dtype, {2, 3, 30}, {5, 400, 11}));
    xs.push_back(numbers_.make(dtype, {2, 3, 4, 30}, {0, 0, 1, 4}));
    for (const Operand& x : xs) {
      Sizes sizes(x.view.sizes, x.view.sizes + x.view.rank);
      sizes.back() = 41;
      const Operand out = numbers_.make(dtype, sizes), plain = numbers_.make(dtype, sizes);
      call_kernel(&emulated::linear, {x.view, w.view, bias.view}, {out.view}, fault_);
      call_kernel(&emulated::linear, {x.view, w.view}, {plain.view}, fault_);
      for (std::int64_t i = 0; i < out.view.numel(); ++i) {
        double sum = 0;
        for (std::int64_t q = 0; q < 30; ++q) sum += x.element(i / 41 * 30 + q) * w.at(q + i % 41 * 30);
        ASSERT_NEAR(plain.at(i), sum, tolerance(dtype, 30));
        ASSERT_NEAR(out.at(i), sum + bias.at(i % 41 * 3), tolerance(dtype, 30));
      }
    }
  }
}

TEST_F(CudaProducts, AgreesWithTheCpuKernel) {
  const Operand x = numbers_.make(DType::f32, {65, 33}), w = numbers_.make(DType::f32, {33, 67}),
                bias = numbers_.make(DType::f32, {67});
  const Operand ours = numbers_.make(DType::f32, {65, 67}), theirs = numbers_.make(DType::f32, {65, 67});
  call_kernel(&emulated::linear, {x.view, w.view, bias.view}, {ours.view}, fault_);
  call_kernel(&cpu::linear, {x.view, w.view, bias.view}, {theirs.view}, fault_);
  for (std::int64_t i = 0; i < 65 * 67; ++i) ASSERT_NEAR(ours.at(i), theirs.at(i), 1e-5);
}

TEST_F(CudaProducts, RefusesOtherTypes) {
  const Operand a = numbers_.make(DType::u8, {3, 3}), out = numbers_.make(DType::u8, {3, 3});
  call_kernel(&emulated::matmul, {a.view, a.view}, {out.view}, fault_);
  EXPECT_NE(fault_.what.load(), nullptr);
}

TEST_F(CudaProducts, NeedNoWorkspaceWithoutCublas) {
  const Operand a = numbers_.make(DType::f32, {64, 64}), out = numbers_.make(DType::f32, {64, 64});
  const View inputs[] = {a.view, a.view};
  KernelCall call;
  call.inputs = inputs;
  call.n_inputs = 2;
  call.outputs = &out.view;
  call.n_outputs = 1;
  EXPECT_EQ(emulated::matmul_workspace(call), 0);
}

}  // namespace
}  // namespace tapedeck::kernels
