// softmax and log_softmax along one axis, and their gradients, which read the result. Views are dense: [outer, axis, inner].
//
// Every sum along the axis is added in interleaved lanes and then pairwise (row_sums.h), for every inner size.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

namespace tapedeck::kernels::cpu {
namespace {

// Calls body(lines, in, out) for rows along the axis of all operands. Rows that lie side by side come together, and so do short
// rows.
template <class T, std::size_t kInputs, class Body>
void for_lines(const KernelCall& call, const Body& body) {
  const View& x = call.outputs[0];
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= x.sizes[d];
  for (int d = axis + 1; d < x.rank; ++d) inner *= x.sizes[d];
  const std::int64_t n = x.sizes[axis];
  if (x.numel() == 0) return;
  std::array<const T*, kInputs> in;
  for (std::size_t k = 0; k < kInputs; ++k) in[k] = call.inputs[k].as<T>();
  // A job is `width` neighbouring rows out of each group of `together` rows.
  const bool short_rows = inner == 1 && n <= kShortLine;
  const std::int64_t together = short_rows ? outer : inner, groups = short_rows ? 1 : outer, step = short_rows ? n : 1;
  const std::int64_t width = short_rows || inner >= kLeastSideBySide ? std::min(together, kMostLines) : 1;
  const std::int64_t jobs = (together + width - 1) / width;
  const double ns = (sizeof(T) == 4 ? 1.0 : 6.0) * static_cast<double>(n * width) + 10;
  parallel_for(groups * jobs, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t first = job % jobs * width;
      const Lines s{job / jobs * n * inner + first * step, n, inner, step, std::min(width, together - first)};
      with_long_loops(s, in, call.outputs[0].as<T>(), body);
    }
  });
}

template <class T>
void softmax_of(const KernelCall& call) {
  for_lines<T, 1>(call, [](const Lines& s, const auto& in, T* y) {
    T top[kMostLines], scale[kMostLines];
    line_maxima(s, in[0], top);
    line_exp_sums(s, in[0], top, y, scale);
    for (std::int64_t j = 0; j < s.width; ++j) scale[j] = T(1) / scale[j];
    for_elements(
        s, [&](std::int64_t j) { return scale[j]; }, [y](std::int64_t at, std::int64_t, T factor) { y[at] *= factor; });
  });
}

template <class T>
void log_softmax_of(const KernelCall& call) {
  for_lines<T, 1>(call, [](const Lines& s, const auto& in, T* y) {
    const LineLogSumExp<T> total(s, in[0]);
    for_elements(s, total, [x = in[0], y](std::int64_t at, std::int64_t, const LogSumExp<T>& of_row) {
      y[at] = of_row.log_probability(x[at]);
    });
  });
}

template <class T>
void softmax_grad_of(const KernelCall& call) {
  for_lines<T, 2>(call, [](const Lines& s, const auto& in, T* dx) {
    const T *y = in[0], *dy = in[1];
    T total[kMostLines];
    const auto none = [](std::int64_t) { return T(0); };
    line_sums(s, total, none, [y, dy](std::int64_t at, std::int64_t, T) { return y[at] * dy[at]; });
    for_elements(
        s, [&](std::int64_t j) { return total[j]; },
        [y, dy, dx](std::int64_t at, std::int64_t, T sum) { dx[at] = y[at] * (dy[at] - sum); });
  });
}

template <class T>
void log_softmax_grad_of(const KernelCall& call) {
  for_lines<T, 2>(call, [](const Lines& s, const auto& in, T* dx) {
    const T *y = in[0], *dy = in[1];
    T total[kMostLines];
    const auto none = [](std::int64_t) { return T(0); };
    line_sums(s, total, none, [dy](std::int64_t at, std::int64_t, T) { return dy[at]; });
    for_elements(
        s, [&](std::int64_t j) { return total[j]; },
        [y, dy, dx](std::int64_t at, std::int64_t, T sum) { dx[at] = dy[at] - exp_of(y[at]) * sum; });
  });
}

}  // namespace

void softmax(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { softmax_of<decltype(t)>(call); });
}

void log_softmax(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { log_softmax_of<decltype(t)>(call); });
}

// dx = y (dy - sum(y dy))
void softmax_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { softmax_grad_of<decltype(t)>(call); });
}

// dx = dy - exp(y) sum(dy)
void log_softmax_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { log_softmax_grad_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
