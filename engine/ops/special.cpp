#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {

Tensor full(const Shape& shape, double value, DType dtype, Site site) {
  FullAttrs attrs;
  for (std::int64_t s : shape) attrs.shape.push_back(s);
  attrs.dtype = dtype;
  attrs.value = value;
  Tensor filled = apply(ops::full, {}, &attrs, site);
  if (detail::Storage* storage = filled.impl()->storage; storage && value == 0) storage->zeros_version = storage->version;
  return filled;
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/special.h>
