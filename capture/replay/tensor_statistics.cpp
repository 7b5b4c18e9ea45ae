#include <tapedeck/capture/replay/tensor_statistics.h>

#include <tapedeck/capture/replay/elements.h>
#include <tapedeck/engine/eager/print.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {

namespace {

struct Range {
  long double min = 0, max = 0;
  std::int64_t count = 0;  // of finite elements

  void add(long double x) {
    min = count == 0 ? x : std::min(min, x);
    max = count == 0 ? x : std::max(max, x);
    ++count;
  }
};

}  // namespace

TensorStatistics statistics(const Tensor& tensor) {
  const TensorElements elements(tensor);
  TensorStatistics s;
  s.elements = elements.count();
  Range range;
  long double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < elements.count(); ++i) {
    const long double x = elements.number(i);
    s.nan += std::isnan(x);
    s.infinite += std::isinf(x);
    s.zeros += x == 0;
    if (!std::isfinite(x)) continue;
    range.add(x);
    sum += x;
  }
  if (range.count == 0) return s;
  const long double mean = sum / static_cast<long double>(range.count);
  for (std::int64_t i = 0; i < elements.count(); ++i)
    if (const long double x = elements.number(i); std::isfinite(x)) squares += (x - mean) * (x - mean);
  s.min = static_cast<double>(range.min);
  s.max = static_cast<double>(range.max);
  s.mean = static_cast<double>(mean);
  s.deviation = static_cast<double>(std::sqrt(squares / static_cast<long double>(range.count)));
  return s;
}

double Histogram::edge(std::size_t bin) const {
  const long double share = static_cast<long double>(bin) / static_cast<long double>(std::max<std::size_t>(counts.size(), 1));
  return static_cast<double>(min + (static_cast<long double>(max) - min) * share);
}

Histogram histogram(const Tensor& tensor, int bins) {
  if (bins < 1) throw UsageError(fmt::format("a histogram of {} bins", bins));
  const TensorElements elements(tensor);
  Range range;
  for (std::int64_t i = 0; i < elements.count(); ++i)
    if (const long double x = elements.number(i); std::isfinite(x)) range.add(x);
  if (range.count == 0) return {};
  const long double width = (range.max - range.min) / bins;
  Histogram h{static_cast<double>(range.min), static_cast<double>(range.max), {}};
  h.counts.assign(width > 0 ? static_cast<std::size_t>(bins) : 1, 0);
  for (std::int64_t i = 0; i < elements.count(); ++i) {
    const long double x = elements.number(i);
    if (!std::isfinite(x)) continue;
    const auto bin = width > 0 ? static_cast<std::int64_t>((x - range.min) / width) : 0;
    ++h.counts[static_cast<std::size_t>(std::min<std::int64_t>(bin, static_cast<std::int64_t>(h.counts.size()) - 1))];
  }
  return h;
}

std::string corner_text(const Tensor& tensor) {
  const int rank = tensor.rank();
  return to_string(tensor, {.precision = 6, .threshold = 64, .edge_items = rank <= 2 ? 3 : rank == 3 ? 2 : 1});
}

}  // namespace tapedeck
