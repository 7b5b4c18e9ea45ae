#include <tapedeck/capture/replay/tensor_difference.h>

#include <tapedeck/capture/replay/elements.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tapedeck {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool is_float(DType d) { return d == DType::f32 || d == DType::f64 || d == DType::f16 || d == DType::bf16; }

bool comparable(const Type& got, const Type& expected, const Tolerance& tolerance) {
  return got.shape == expected.shape &&
         (got.dtype == expected.dtype || (!tolerance.bits && is_float(got.dtype) && is_float(expected.dtype)));
}

bool equal_numbers(long double got, long double expected, const Tolerance& tolerance) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  if (!std::isfinite(got) || !std::isfinite(expected)) return false;
  const long double allowed = tolerance.absolute + static_cast<long double>(tolerance.relative) * std::fabs(expected);
  return std::fabs(got - expected) <= allowed;
}

std::string index_text(const Shape& shape, std::int64_t flat) {
  std::string text;
  for (int d = shape.rank - 1; d >= 0; --d) {
    text = fmt::format("{}{}{}", flat % shape[d], text.empty() ? "" : ",", text);
    flat /= shape[d];
  }
  return "[" + text + "]";
}

ElementDifference difference_at(const Shape& shape, const TensorElements& got, const TensorElements& expected, std::int64_t i) {
  ElementDifference d{index_text(shape, i), got.text(i), expected.text(i), 0, 0};
  const long double g = got.number(i), e = expected.number(i);
  const bool finite = std::isfinite(g) && std::isfinite(e);
  d.absolute = finite ? static_cast<double>(std::fabs(g - e)) : kInfinite;
  d.relative = finite && e != 0 ? static_cast<double>(std::fabs(g - e) / std::fabs(e)) : d.absolute == 0 ? 0 : kInfinite;
  return d;
}

std::string to_text(const ElementDifference& d) {
  return fmt::format("{}: got {}, expected {} (absolute {:.3g}, relative {:.3g})", d.index, d.got, d.expected, d.absolute,
                     d.relative);
}

}  // namespace

TensorDifference compare_tensors(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  TensorDifference result;
  if (!comparable(got.type(), expected.type(), tolerance)) {
    result.types = fmt::format("got {}, expected {}", to_string(got.type()), to_string(expected.type()));
    return result;
  }
  const TensorElements a(got), b(expected);
  result.elements = a.count();
  if (a.all_same_bits(b)) return result;
  long double most = -1;
  std::int64_t first = -1, worst = -1;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const long double x = a.number(i), y = b.number(i);
    if (tolerance.bits ? a.same_bits(i, b) : equal_numbers(x, y, tolerance)) continue;
    ++result.differing;
    if (first < 0) first = i;
    const long double by = std::isfinite(x) && std::isfinite(y) ? std::fabs(x - y) : static_cast<long double>(kInfinite);
    if (by > most) worst = i, most = by;
  }
  if (first < 0) return result;
  result.first = difference_at(got.shape(), a, b, first);
  result.worst = difference_at(got.shape(), a, b, worst);
  return result;
}

std::string to_text(const TensorDifference& d) {
  if (!d.types.empty()) return d.types;
  if (d.differing == 0) return "equal";
  std::string text = fmt::format("{} of {} element{} differ{}; first {}", d.differing, d.elements, d.elements == 1 ? "" : "s",
                                 d.differing == 1 ? "s" : "", to_text(d.first));
  if (d.worst.index != d.first.index) text += "; worst " + to_text(d.worst);
  return text;
}

}  // namespace tapedeck
