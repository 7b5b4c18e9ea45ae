#include <tapedeck/engine/infer.h>
#include <tapedeck/engine/ops.h>

#include <fmt/format.h>

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

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/matmul.h>
