// Scans along one axis of dense views [outer, axis, inner]: cumsum, cumprod, cummax, cummin, logcumsumexp, linear_scan. One
// thread walks a line from end to end, or a strip of neighbouring lines, so the order of additions depends on the length of the
// line alone. cumsum adds up blocks of 8 elements; the other scans go element by element.
//
//   cumsum [1 2 3]   ->   [1 3 6];   exclusive: [0 1 3];   reverse: [6 5 3]
#include <tapedeck/kernels/attrs/scan.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/reduction/scan_lines.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/cpu/transpose.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {

void cumsum(const KernelCall& call);
void cumprod(const KernelCall& call);
void linear_scan(const KernelCall& call);
void logcumsumexp(const KernelCall& call);
void cummax(const KernelCall& call);
void cummin(const KernelCall& call);

namespace {

// `width` neighbouring lines of n elements. Visited element i of line j lies at `at + i * stride + j`.
struct Strip {
  std::int64_t at, n, stride, width;
};

// Calls body(strip) for strips that cover all lines along the axis.
template <class Body>
void for_strips(const View& x, std::int64_t axis, bool reverse, double ns_per_element, const Body& body) {
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= x.sizes[d];
  for (int d = static_cast<int>(axis) + 1; d < x.rank; ++d) inner *= x.sizes[d];
  const std::int64_t n = x.sizes[axis];
  if (n == 0) return;
  const std::int64_t strips = (inner + kStripWidth - 1) / kStripWidth;
  const double ns = ns_per_element * static_cast<double>(n * std::min(inner, kStripWidth)) + 5;
  parallel_for(outer * strips, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t column = job % strips * kStripWidth;
      const std::int64_t first = job / strips * n * inner + column;
      body(
          Strip{reverse ? first + (n - 1) * inner : first, n, reverse ? -inner : inner, std::min(kStripWidth, inner - column)});
    }
  });
}

constexpr int kBlock = 8;

// The type in which the sums of blocks are added. A long sum of small terms in f32 would stand still: 2^21 + 0.1 is 2^21.
template <class T>
using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;

// Adds the next element to the sum of its block, and writes the running sum: `before` is the sum of the blocks before.
template <bool kExclusive, class T>
inline void sum_next(T x, T before, T& sum, T& y) {
  const T next = Add{}(sum, x);
  y = Add{}(before, kExclusive ? sum : next);
  sum = next;
}

// Eight elements of four bytes, in the order of the scan: `back` turns a load or a store around.
template <class V, class T>
inline V load_eight(const T* x, bool back) {
  V v;
  std::memcpy(&v, back ? x - 7 : x, sizeof v);
  return back ? __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0) : v;
}
template <class V, class T>
inline void store_eight(V v, T* y, bool back) {
  if (back) v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
  std::memcpy(back ? y - 7 : y, &v, sizeof v);
}

// Fetches the n elements up to x and y, in the order of addresses. A processor does not foresee a way back as well as a way
// forth.
constexpr std::int64_t kAhead = 1024;
template <class T>
void fetch_back(const T* x, T* y, std::int64_t n) {
  for (std::int64_t k = n - 1; k >= 0; k -= 16) {
    __builtin_prefetch(x - k);
    __builtin_prefetch(y - k, 1);
  }
}

// Sums eight blocks at a time. The blocks are transposed, so that one addition takes the next element of all eight. Returns the
// number of elements that are done.
template <bool kExclusive, bool kBack, class T>
std::int64_t sum_eight_blocks(std::int64_t n, const T* x, T* y, Total<T>& total) {
  using V = Register<std::conditional_t<std::is_same_v<T, float>, float, std::uint32_t>>;
  constexpr std::int64_t kWay = kBack ? -1 : 1;
  std::int64_t i = 0;
  for (; i + kBlock * kBlock <= n; i += kBlock * kBlock) {
    if (kBack && i % kAhead == 0) fetch_back(x - i, y - i, std::min(kAhead, n - i));
    detail::Eight r[kBlock];
    for (int b = 0; b < kBlock; ++b) r[b] = load_eight<detail::Eight>(x + kWay * (i + b * kBlock), kBack);
    detail::transpose_eight(r);
    V sum = {}, before;
    TAPEDECK_UNROLL
    for (int k = 0; k < kBlock; ++k) {
      const V next = sum + reinterpret_cast<V>(r[k]);  // a cast between vectors keeps the bits
      r[k] = reinterpret_cast<detail::Eight>(kExclusive ? sum : next);
      sum = next;
    }
    for (int b = 0; b < kBlock; ++b) {
      before[b] = static_cast<T>(total);
      total = Add{}(total, static_cast<Total<T>>(static_cast<T>(sum[b])));
    }
    TAPEDECK_UNROLL
    for (int k = 0; k < kBlock; ++k) r[k] = reinterpret_cast<detail::Eight>(before + reinterpret_cast<V>(r[k]));
    detail::transpose_eight(r);
    for (int b = 0; b < kBlock; ++b) store_eight(r[b], y + kWay * (i + b * kBlock), kBack);
  }
  return i;
}

template <bool kExclusive, class T>
void sum_line(const Strip& s, const T* x, T* y) {
  Total<T> total = 0;
  std::int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    if (s.stride == 1) i = sum_eight_blocks<kExclusive, false>(s.n, x + s.at, y + s.at, total);
    if (s.stride == -1) i = sum_eight_blocks<kExclusive, true>(s.n, x + s.at, y + s.at, total);
  }
  std::int64_t at = s.at + i * s.stride;
  for (; i + kBlock <= s.n; i += kBlock) {
    const T before = static_cast<T>(total);
    T sum = 0;
    TAPEDECK_UNROLL
    for (int k = 0; k < kBlock; ++k, at += s.stride) sum_next<kExclusive>(x[at], before, sum, y[at]);
    total = Add{}(total, static_cast<Total<T>>(sum));
  }
  const T before = static_cast<T>(total);
  T sum = 0;
  for (; i < s.n; ++i, at += s.stride) sum_next<kExclusive>(x[at], before, sum, y[at]);
}

template <bool kExclusive, class T>
void sum_strip(const Strip& s, const T* x, T* y) {
  if (s.width == 1) return sum_line<kExclusive>(s, x, y);
  Total<T> total[kStripWidth];
  std::fill(total, total + s.width, Total<T>(0));
  x += s.at;
  y += s.at;
  T sum[kStripWidth], before[kStripWidth];
  std::fill(sum, sum + s.width, T(0));
  for (std::int64_t i = 0; i < s.n; ++i, x += s.stride, y += s.stride) {
    if (i % kBlock == 0) {
      for (std::int64_t j = 0; j < s.width; ++j) {
        total[j] = Add{}(total[j], static_cast<Total<T>>(sum[j]));
        before[j] = static_cast<T>(total[j]);
        sum[j] = T(0);
      }
    }
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < s.width; ++j) sum_next<kExclusive>(x[j], before[j], sum[j], y[j]);
  }
}

// True if the lines along the axis are contiguous, and so many that kTogether of them are walked together.
template <class T>
bool walks_together(const View& x, std::int64_t axis) {
  for (int d = static_cast<int>(axis) + 1; d < x.rank; ++d)
    if (x.sizes[d] != 1) return false;
  const std::int64_t n = x.sizes[axis];
  return sizeof(T) == 4 && n > 0 && n <= std::numeric_limits<std::int32_t>::max() && x.numel() / n >= kLeastTogether;
}

// Calls body(first line, lines) for all lines, kTogether at a time.
template <class Body>
void for_lines_together(const View& x, std::int64_t axis, double ns_per_element, const Body& body) {
  const std::int64_t lines = x.numel() / x.sizes[axis];
  const double ns = ns_per_element * static_cast<double>(x.sizes[axis] * kTogether) + 5;
  parallel_for((lines + kTogether - 1) / kTogether, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group)
      body(group * kTogether, std::min(kTogether, lines - group * kTogether));
  });
}

// Scans along the axis. make(width) gives the scan object of that many lines (scan_lines.h).
template <class T, class Make>
void scan_axis(const KernelCall& call, std::int64_t axis, bool reverse, double ns_per_element, const Make& make) {
  const View& view = call.inputs[0];
  const T* x = view.as<T>();
  T* y = call.outputs[0].as<T>();
  if constexpr (sizeof(T) == 4) {
    if (walks_together<T>(view, axis)) {
      const std::int64_t n = view.sizes[axis];
      return for_lines_together(view, axis, ns_per_element, [&](std::int64_t first, std::int64_t lines) {
        auto scan = make(lines);
        scan_together(scan, n, lines, reverse, x + first * n, y + first * n);
      });
    }
  }
  for_strips(view, axis, reverse, ns_per_element, [&](const Strip& s) {
    auto scan = make(s.width);
    scan.walk(s.n, x + s.at, y + s.at, s.stride, s.width);
  });
}

// Calls walk(strip, x, y) with std::true_type after it if the scan leaves out element i, else std::false_type.
template <class Walk>
void scan(const KernelCall& call, Walk&& walk) {
  const auto& a = call.attributes<ScanAttrs>();
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    const T* x = call.inputs[0].as<T>();
    T* y = call.outputs[0].as<T>();
    for_strips(call.inputs[0], a.axis, a.reverse, 1.0, [&](const Strip& s) {
      if (a.exclusive)
        walk(s, x, y, std::true_type{});
      else
        walk(s, x, y, std::false_type{});
    });
  });
}

template <class T>
void linear_strip(const Strip& s, const T* a, const T* b, T* y) {
  if (s.width == 1) {
    T last = y[s.at] = b[s.at];
    for (std::int64_t i = 1, at = s.at + s.stride; i < s.n; ++i, at += s.stride) y[at] = last = b[at] + a[at] * last;
    return;
  }
  T last[kStripWidth];
  for (std::int64_t j = 0; j < s.width; ++j) y[s.at + j] = last[j] = b[s.at + j];
  for (std::int64_t i = 1; i < s.n; ++i) {
    const std::int64_t at = s.at + i * s.stride;
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < s.width; ++j) y[at + j] = last[j] = b[at + j] + a[at + j] * last[j];
  }
}

template <class Beats>
void running_extreme(const KernelCall& call) {
  const View& view = call.inputs[0];
  const std::int64_t axis = call.attributes<AxisAttrs>().axis;
  for_numbers(call, view.dtype, [&](auto t) {
    using T = decltype(t);
    const T* x = view.as<T>();
    T* y = call.outputs[0].as<T>();
    std::int64_t* index = call.outputs[1].as<std::int64_t>();
    if constexpr (sizeof(T) == 4) {
      if (walks_together<T>(view, axis)) {
        const std::int64_t n = view.sizes[axis];
        return for_lines_together(view, axis, 0.7, [&](std::int64_t first, std::int64_t lines) {
          ExtremeScan<Beats, T, std::int32_t> scan(lines);
          extremes_together(scan, n, lines, x + first * n, y + first * n, index + first * n);
        });
      }
    }
    for_strips(view, axis, false, 1.5, [&](const Strip& s) {
      ExtremeScan<Beats, T, std::int64_t> scan(s.width);
      scan.walk(s.n, x + s.at, y + s.at, index + s.at, s.stride, s.width);
    });
  });
}

}  // namespace

void cumsum(const KernelCall& call) {
  scan(call, [](const Strip& s, const auto* x, auto* y, auto exclusive) { sum_strip<exclusive.value>(s, x, y); });
}
void cumprod(const KernelCall& call) {
  const auto& a = call.attributes<ScanAttrs>();
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if (a.exclusive)
      scan_axis<T>(call, a.axis, a.reverse, 1.0, [](std::int64_t width) { return FoldScan<Mul, true, T>(width, T(1)); });
    else
      scan_axis<T>(call, a.axis, a.reverse, 1.0, [](std::int64_t width) { return FoldScan<Mul, false, T>(width, T(1)); });
  });
}

void linear_scan(const KernelCall& call) {
  const auto& a = call.attributes<LinearScanAttrs>();
  for_floats(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_strips(call.inputs[0], a.axis, a.reverse, 1.5, [&](const Strip& s) {
      linear_strip(s, call.inputs[0].as<T>(), call.inputs[1].as<T>(), call.outputs[0].as<T>());
    });
  });
}

void logcumsumexp(const KernelCall& call) {
  const auto& a = call.attributes<LinearScanAttrs>();
  for_floats(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    scan_axis<T>(call, a.axis, a.reverse, sizeof(T) == 4 ? 2.0 : 15.0, [](std::int64_t width) { return ExpScan<T>(width); });
  });
}

void cummax(const KernelCall& call) { running_extreme<GreaterEqual>(call); }
void cummin(const KernelCall& call) { running_extreme<LessEqual>(call); }

}  // namespace tapedeck::kernels::cpu
