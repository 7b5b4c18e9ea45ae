// Scans along one axis of dense views [outer, axis, inner]: cumsum, cumprod, cummax, cummin, logcumsumexp, linear_scan. One
// thread walks a line from end to end, or a strip of neighbouring lines, so the order of additions is the order of the
// elements.
//
//   cumsum [1 2 3]   ->   [1 3 6];   exclusive: [0 1 3];   reverse: [6 5 3]
#include <tapedeck/kernels/attrs/scan.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {

void cumsum(const KernelCall& call);
void cumprod(const KernelCall& call);
void linear_scan(const KernelCall& call);
void logcumsumexp(const KernelCall& call);
void cummax(const KernelCall& call);
void cummin(const KernelCall& call);

namespace {

// The number of neighbouring lines that are walked together: wide enough for the prefetcher.
constexpr std::int64_t kStripWidth = 512;

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

template <class Step, bool kExclusive, class T>
void scan_strip(const Strip& s, const T* x, T* y, T start) {
  if (s.width == 1) {
    T total = start;
    for (std::int64_t i = 0, at = s.at; i < s.n; ++i, at += s.stride) {
      const T next = Step{}(total, x[at]);
      y[at] = kExclusive ? total : next;
      total = next;
    }
    return;
  }
  T total[kStripWidth];
  std::fill(total, total + s.width, start);
  for (std::int64_t i = 0; i < s.n; ++i) {
    const T* from = x + s.at + i * s.stride;
    T* to = y + s.at + i * s.stride;
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < s.width; ++j) {
      const T next = Step{}(total[j], from[j]);
      to[j] = kExclusive ? total[j] : next;
      total[j] = next;
    }
  }
}

template <class Step>
void scan(const KernelCall& call, int start) {
  const auto& a = call.attributes<ScanAttrs>();
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    const T* x = call.inputs[0].as<T>();
    T* y = call.outputs[0].as<T>();
    for_strips(call.inputs[0], a.axis, a.reverse, 1.0, [&](const Strip& s) {
      if (a.exclusive)
        scan_strip<Step, true>(s, x, y, static_cast<T>(start));
      else
        scan_strip<Step, false>(s, x, y, static_cast<T>(start));
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

// The largest element so far, and the sum of e^(x - largest) over the elements so far.
template <class T>
struct RunningExp {
  T top = -std::numeric_limits<T>::infinity();
  T total = 0;

  T next(T x) {
    if (x == top) {
      total += x == -std::numeric_limits<T>::infinity() ? T(0) : T(1);
    } else if (x > top) {
      total = total * exp_of(top - x) + T(1);
      top = x;
    } else {
      total += exp_of(x - top);
    }
    return top + log_of(total);
  }
};

template <class Beats, class T>
void extreme_strip(const Strip& s, const T* x, T* y, std::int64_t* index) {
  T best[kStripWidth];
  std::int64_t found[kStripWidth] = {};
  for (std::int64_t j = 0; j < s.width; ++j) best[j] = x[s.at + j];
  for (std::int64_t i = 0; i < s.n; ++i) {
    const std::int64_t at = s.at + i * s.stride;
    for (std::int64_t j = 0; j < s.width; ++j) {
      const T now = x[at + j];
      const bool takes = Beats{}(now, best[j]) || now != now;
      const bool stays = best[j] != best[j];
      best[j] = takes && !stays ? now : best[j];
      found[j] = takes && !stays ? i : found[j];
      y[at + j] = best[j];
      index[at + j] = found[j];
    }
  }
}

template <class Beats>
void running_extreme(const KernelCall& call) {
  const View& x = call.inputs[0];
  const std::int64_t axis = call.attributes<AxisAttrs>().axis;
  for_numbers(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    for_strips(x, axis, false, 1.5, [&](const Strip& s) {
      extreme_strip<Beats>(s, x.as<T>(), call.outputs[0].as<T>(), call.outputs[1].as<std::int64_t>());
    });
  });
}

}  // namespace

void cumsum(const KernelCall& call) { scan<Add>(call, 0); }
void cumprod(const KernelCall& call) { scan<Mul>(call, 1); }

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
    for_strips(call.inputs[0], a.axis, a.reverse, 15.0, [&](const Strip& s) {
      RunningExp<T> running[kStripWidth];
      for (std::int64_t i = 0; i < s.n; ++i) {
        const std::int64_t at = s.at + i * s.stride;
        for (std::int64_t j = 0; j < s.width; ++j)
          call.outputs[0].as<T>()[at + j] = running[j].next(call.inputs[0].as<T>()[at + j]);
      }
    });
  });
}

void cummax(const KernelCall& call) { running_extreme<GreaterEqual>(call); }
void cummin(const KernelCall& call) { running_extreme<LessEqual>(call); }

}  // namespace tapedeck::kernels::cpu
