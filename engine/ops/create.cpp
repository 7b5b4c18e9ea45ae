#include <tapedeck/engine/ops/create.h>

#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <cmath>

namespace tapedeck {
namespace {

// The largest and the smallest whole numbers that a dtype holds, as doubles.
double largest_of(DType dtype) { return dtype == DType::u8 ? 255.0 : dtype == DType::i32 ? 2147483647.0 : 9007199254740992.0; }
double smallest_of(DType dtype) { return dtype == DType::u8 ? 0.0 : dtype == DType::i32 ? -2147483648.0 : -9007199254740992.0; }

void require_whole(const Infer& f, const ArangeAttrs& a) {
  const double lowest = smallest_of(a.dtype), highest = largest_of(a.dtype);
  if (a.start != std::floor(a.start) || a.step != std::floor(a.step))
    f.fail(fmt::format("start {} and step {} are not whole numbers, as {} needs", a.start, a.step, dtype_name(a.dtype)));
  for (double v : {a.start, a.stop})  // `stop` itself is not in the range, so it may be one more than the limit
    if (v < lowest - 1 || v > highest + 1) f.fail(fmt::format("{} is outside the range of {}", v, dtype_name(a.dtype)));
  if (a.start < lowest || a.start > highest || std::fabs(a.step) > largest_of(DType::i64))
    f.fail(fmt::format("{} is outside the range of {}", std::fabs(a.step) > largest_of(DType::i64) ? a.step : a.start,
                       dtype_name(a.dtype)));
}

void infer_arange(Infer& f) {
  const auto& a = f.attributes<ArangeAttrs>();
  if (a.dtype == DType::boolean) f.fail("no range of bool");
  if (!std::isfinite(a.start) || !std::isfinite(a.stop) || !std::isfinite(a.step))
    f.fail("start, stop and step must be finite");
  if (a.step == 0) f.fail("step must not be 0");
  if (!is_floating(a.dtype)) require_whole(f, a);
  const double count = std::ceil((a.stop - a.start) / a.step);
  if (!(count <= static_cast<double>(kMaxTypeBytes))) f.fail(fmt::format("{} elements are too many", count));
  f.outputs.assign(1, Type{a.dtype, {count > 0 ? static_cast<std::int64_t>(count) : 0}});
}

void infer_linspace(Infer& f) {
  const auto& a = f.attributes<LinspaceAttrs>();
  if (!is_floating(a.dtype)) f.fail(fmt::format("needs a floating type, got {}", dtype_name(a.dtype)));
  if (!std::isfinite(a.start) || !std::isfinite(a.stop)) f.fail("start and stop must be finite");
  if (a.count < 0) f.fail("count must not be negative");
  f.outputs.assign(1, Type{a.dtype, {a.count}});
}

void infer_eye(Infer& f) {
  const auto& a = f.attributes<EyeAttrs>();
  if (a.rows < 0 || a.columns < 0) f.fail("sizes must not be negative");
  f.outputs.assign(1, Type{a.dtype, {a.rows, a.columns}});
}

}  // namespace

Tensor arange_of(double start, double stop, double step, DType dtype, Site site) {
  const ArangeAttrs attrs{start, stop, step, dtype};
  return apply(ops::arange, {}, &attrs, site);
}

Tensor linspace(double start, double stop, std::int64_t count, DType dtype, Site site) {
  const LinspaceAttrs attrs{start, stop, count, dtype};
  return apply(ops::linspace, {}, &attrs, site);
}

Tensor eye(std::int64_t rows, DType dtype, Site site) { return eye(rows, rows, dtype, site); }

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype, Site site) {
  const EyeAttrs attrs{rows, columns, dtype};
  return apply(ops::eye, {}, &attrs, site);
}

Tensor full_like(const Arg& x, double value) {
  if (!x.tensor().defined()) throw TypeError(error_text("full_like", "the operand is undefined", x.site()));
  return full(x.tensor().shape(), value, x.tensor().dtype(), x.site());
}

Tensor zeros_like(const Arg& x) { return full_like(x, 0); }
Tensor ones_like(const Arg& x) { return full_like(x, 1); }

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/create.h>
