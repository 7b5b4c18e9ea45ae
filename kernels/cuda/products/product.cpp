// Products from calls: the last two dimensions are matrices, and the others are the batch. simplify() joins dimensions of the
// batch, with each other and with the rows.
#include <tapedeck/kernels/cuda/products/product.h>

namespace tapedeck::kernels {
namespace {

// The last two dimensions of a view as a matrix. The others become the batch, aligned at the right with the batch of `out`; a
// size of 1 broadcasts.
MatrixBatch batch_of(const View& v, const View& out) {
  MatrixBatch result;
  result.data = v.data;
  result.row_stride = v.strides[v.rank - 2];
  result.col_stride = v.strides[v.rank - 1];
  const int batch_rank = out.rank - 2, shift = out.rank - v.rank;
  for (int d = 0; d < batch_rank; ++d)
    if (d >= shift && v.sizes[d - shift] != 1) result.batch_strides[d] = v.strides[d - shift];
  return result;
}

// Whether dimension d of the batch continues dimension d + 1: the outer stride is the inner stride times the inner size.
bool continues(const MatrixBatch& x, int d, std::int64_t inner_size) {
  return x.batch_strides[d] == x.batch_strides[d + 1] * inner_size;
}

void remove_dimension(Product& p, int at) {
  for (int d = at; d + 1 < p.batch_rank; ++d) {
    p.batch_sizes[d] = p.batch_sizes[d + 1];
    for (MatrixBatch* x : {&p.a, &p.b, &p.old}) x->batch_strides[d] = x->batch_strides[d + 1];
  }
  --p.batch_rank;
}

void join_batch(Product& p) {
  for (int d = p.batch_rank - 1; d >= 0; --d)
    if (p.batch_sizes[d] == 1) remove_dimension(p, d);
  for (int d = p.batch_rank - 2; d >= 0; --d) {
    const std::int64_t inner = p.batch_sizes[d + 1];
    if (!continues(p.a, d, inner) || !continues(p.b, d, inner) || !continues(p.old, d, inner)) continue;
    p.batch_sizes[d + 1] *= p.batch_sizes[d];
    remove_dimension(p, d);
  }
}

// Whether the rows of the innermost dimension of the batch continue each other.
bool rows_continue(const Product& p, const MatrixBatch& x) {
  return !x.data || p.m == 1 || x.batch_strides[p.batch_rank - 1] == p.m * x.row_stride;
}

void join_rows(Product& p) {
  while (p.batch_rank > 0 && p.b.batch_strides[p.batch_rank - 1] == 0 && rows_continue(p, p.a) && rows_continue(p, p.old)) {
    const int inner = p.batch_rank - 1;
    if (p.m == 1)
      for (MatrixBatch* x : {&p.a, &p.old}) x->row_stride = x->batch_strides[inner];
    p.m *= p.batch_sizes[inner];
    --p.batch_rank;
  }
}

}  // namespace

Product matmul_product(const View& a, const View& b, const View& out) {
  Product p;
  p.dtype = out.dtype;
  p.element_bytes = static_cast<std::int64_t>(dtype_size(out.dtype));
  p.m = out.sizes[out.rank - 2];
  p.n = out.sizes[out.rank - 1];
  p.k = a.sizes[a.rank - 1];
  p.a = batch_of(a, out);
  p.b = batch_of(b, out);
  p.out = out.data;
  p.batch_rank = out.rank - 2;
  for (int d = 0; d < p.batch_rank; ++d) p.batch_sizes[d] = out.sizes[d];
  return p;
}

Product addmm_product(const View& old, const View& a, const View& b, const View& out) {
  Product p = matmul_product(a, b, out);
  p.old = batch_of(old, out);
  return p;
}

// The rows are the last dimension but one, and the dimensions before it are a batch that shares w.
Product linear_product(const View& x, const View& w, const View* bias, const View& out) {
  Product p;
  p.dtype = out.dtype;
  p.element_bytes = static_cast<std::int64_t>(dtype_size(out.dtype));
  p.m = x.rank > 1 ? x.sizes[x.rank - 2] : 1;
  p.n = w.sizes[1];
  p.k = w.sizes[0];
  p.a.data = x.data;
  p.a.row_stride = x.rank > 1 ? x.strides[x.rank - 2] : 0;
  p.a.col_stride = x.strides[x.rank - 1];
  p.b.data = w.data;
  p.b.row_stride = w.strides[0];
  p.b.col_stride = w.strides[1];
  if (bias) {
    p.bias = bias->data;
    p.bias_stride = bias->strides[0];
  }
  p.out = out.data;
  p.batch_rank = x.rank > 2 ? x.rank - 2 : 0;
  for (int d = 0; d < p.batch_rank; ++d) {
    p.batch_sizes[d] = x.sizes[d];
    p.a.batch_strides[d] = x.strides[d];
  }
  return p;
}

void simplify(Product& p) {
  join_batch(p);
  join_rows(p);
}

}  // namespace tapedeck::kernels
