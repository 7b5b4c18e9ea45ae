#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {

Tensor full(const Shape& shape, double value, DType dtype, Site site) {
  FullAttrs attrs;
  for (std::int64_t s : shape) attrs.shape.push_back(s);
  attrs.dtype = dtype;
  attrs.value = value;
  return apply(ops::full, {}, &attrs, site);
}

double exact_double(const char* op, std::int64_t value, Site site) {
  const auto rounded = static_cast<double>(value);
  if (rounded < 0x1p63 && static_cast<std::int64_t>(rounded) == value) return rounded;
  throw TypeError(error_text(op, fmt::format("no double equals {}; make it a tensor by integer_scalar()", value), site));
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/special.h>
