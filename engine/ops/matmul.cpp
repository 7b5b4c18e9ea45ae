#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

void infer_matmul(Infer& f) {
  const Type &a = f.inputs[0], &b = f.inputs[1];
  if (a.dtype != b.dtype) f.fail(fmt::format("operands differ in dtype: {} x {}", to_string(a), to_string(b)));
  if (a.dtype == DType::boolean || a.dtype == DType::u8) f.fail(fmt::format("no product of {}", dtype_name(a.dtype)));
  const int ra = a.shape.rank, rb = b.shape.rank;
  if (ra < 2 || rb < 2) f.fail(fmt::format("operands need at least two dimensions: {} x {}", to_string(a), to_string(b)));
  if (a.shape[ra - 1] != b.shape[rb - 2]) f.fail(fmt::format("inner sizes differ: {} x {}", to_string(a), to_string(b)));
  Shape batch_a = a.shape, batch_b = b.shape, batch;
  batch_a.rank -= 2;
  batch_b.rank -= 2;
  if (!broadcast_shapes(batch_a, batch_b, &batch))
    f.fail(fmt::format("leading dimensions do not broadcast: {} x {}", to_string(a), to_string(b)));
  batch.sizes[batch.rank++] = a.shape[ra - 2];
  batch.sizes[batch.rank++] = b.shape[rb - 1];
  f.outputs.assign(1, Type{a.dtype, batch});
}

// Merges all dimensions except the last one.
Tensor rows_of(const Tensor& t) { return reshape(t, {t.numel() / std::max<std::int64_t>(t.size(-1), 1), t.size(-1)}); }

// The gradient of matmul. If one matrix on the right serves a whole batch on the left, the rows of the batch are merged
// first. The matrix's gradient is then one product instead of a sum over the batch.
void vjp_matmul(Vjp& b) {
  if (b.needs(0)) b.dx(0, matmul(b.dy(), transpose_last(b.x(1))));
  if (!b.needs(1)) return;
  const bool one_matrix = b.x(0).rank() > 2 && b.x(1).rank() == 2 && b.x(0).numel() > 0 && b.dy().numel() > 0;
  if (one_matrix)
    b.dx(1, matmul(transpose_last(rows_of(b.x(0))), rows_of(b.dy())));
  else
    b.dx(1, matmul(transpose_last(b.x(0)), b.dy()));
}

}  // namespace

Tensor matmul_vectors(const Tensor& a, const Tensor& b, Site site) {
  const auto fail = [&](const char* why) {
    throw TypeError(error_text("matmul", fmt::format("{}: {} x {}", why, to_string(a.type()), to_string(b.type())), site));
  };
  if (a.rank() == 0 || b.rank() == 0) fail("operands need at least one dimension");
  if (a.size(-1) != b.size(b.rank() == 1 ? 0 : -2)) fail("inner sizes differ");
  const Tensor left = a.rank() == 1 ? reshape(Arg(a, site.file, site.line), Shape{1, a.size(0)}) : a;
  const Tensor right = b.rank() == 1 ? reshape(Arg(b, site.file, site.line), Shape{b.size(0), 1}) : b;
  const Tensor product = apply(ops::matmul, {&left, &right}, nullptr, site);
  Shape kept;
  for (int d = 0; d < product.rank(); ++d) {
    const bool gained = (a.rank() == 1 && d == product.rank() - 2) || (b.rank() == 1 && d == product.rank() - 1);
    if (!gained) kept.sizes[kept.rank++] = product.size(d);
  }
  return reshape(Arg(product, site.file, site.line), kept);
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/matmul.h>
