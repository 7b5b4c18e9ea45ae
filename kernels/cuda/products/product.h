// Product describes one call of matmul, linear or addmm as batches of matrices: out = a b, plus `old`, plus a bias for each
// column. Both ways to compute it read the same struct: cuBLASLt (lt_product.h) and our own kernels (matmul.inl).
#pragma once

#include <tapedeck/kernels/kernel.h>
#include <tapedeck/kernels/scalar.h>

#include <cstdint>

namespace tapedeck::kernels {

inline constexpr int kBatchRank = kMaxRank - 2;

// A batch of matrices of any strides. A batch stride of 0 repeats one matrix.
struct MatrixBatch {
  const void* data = nullptr;
  std::int64_t row_stride = 0, col_stride = 0;
  std::int64_t batch_strides[kBatchRank] = {};
};

// The result is dense: matrices [m,n], row-major, one after the other. All strides count elements.
struct Product {
  DType dtype = DType::f32;
  std::int64_t element_bytes = 4;
  std::int64_t m = 0, n = 0, k = 0;
  MatrixBatch a, b;            // [m,k] and [k,n]
  MatrixBatch old;             // [m,n]; data is null if nothing is added
  const void* bias = nullptr;  // n elements, or null
  std::int64_t bias_stride = 0;
  void* out = nullptr;
  int batch_rank = 0;  // the dimensions of the batch, outermost first
  std::int64_t batch_sizes[kBatchRank] = {};

  TAPEDECK_HD std::int64_t batch() const {
    std::int64_t count = 1;
    for (int d = 0; d < batch_rank; ++d) count *= batch_sizes[d];
    return count;
  }
};

// The product of the views of a matmul: the leading dimensions of a and b broadcast to those of the result.
Product matmul_product(const View& a, const View& b, const View& out);
Product addmm_product(const View& old, const View& a, const View& b, const View& out);
Product linear_product(const View& x, const View& w, const View* bias, const View& out);

// Drops dimensions of size 1 from the batch, joins dimensions that lie one after the other in every operand, and joins the
// batch with the rows of `a` where one matrix b serves all of them. The results stay the same. The product must have elements.
void simplify(Product& p);

// A product of one row or one column reads its matrix once, whatever the kernel, so our own kernel computes it, unless the
// inner dimension is so long that it should be split.
inline bool is_vector_product(const Product& p) { return (p.m == 1 || p.n == 1) && p.k <= 16384; }

}  // namespace tapedeck::kernels
