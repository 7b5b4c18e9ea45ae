// Scans along one axis of dense views [outer, axis, inner]: cumsum, cumprod, cummax, cummin, logcumsumexp, linear_scan. One
// thread walks one line from end to end, in the order of the CPU kernel, so the bits are the same. Few long lines leave most
// of the device idle.
//
//   cumsum [1 2 3]   ->   [1 3 6];   exclusive: [0 1 3];   reverse: [6 5 3]
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/attrs/scan.h>
#include <tapedeck/kernels/cuda/movement/movement.h>
#include <tapedeck/kernels/scalar.h>

#include <limits>
#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

struct Scan {
  const void *a, *b;  // b: the second operand of linear_scan
  void* y;
  std::int64_t* index;  // of the extremes
  std::int64_t lines, n, inner;
  bool exclusive, reverse, largest;
};

// Element i of the walk along a line lies at `at` + i * `step`.
struct ScanLine {
  std::int64_t at, step;
  TAPEDECK_DEVICE ScanLine(const Scan& s, std::int64_t line)
      : at(line / s.inner * s.n * s.inner + line % s.inner), step(s.inner) {
    if (!s.reverse) return;
    at += (s.n - 1) * s.inner;
    step = -s.inner;
  }
};

// The sum of each block of eight is added to the sum of the blocks before it, which is f64 for f32.
template <class T>
TAPEDECK_KERNEL void sums_kernel(const Scan s) {
  using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;
  constexpr int kBlock = 8;
  for (std::int64_t line = thread_index(); line < s.lines; line += thread_count()) {
    ScanLine walk(s, line);
    Total total = 0;
    T sum = 0, before = 0;
    for (std::int64_t i = 0; i < s.n; ++i, walk.at += walk.step) {
      if (i % kBlock == 0) {
        total = Add{}(total, static_cast<Total>(sum));
        before = static_cast<T>(total);
        sum = 0;
      }
      const T next = Add{}(sum, static_cast<const T*>(s.a)[walk.at]);
      static_cast<T*>(s.y)[walk.at] = Add{}(before, s.exclusive ? sum : next);
      sum = next;
    }
  }
}

template <class T>
TAPEDECK_KERNEL void products_kernel(const Scan s) {
  for (std::int64_t line = thread_index(); line < s.lines; line += thread_count()) {
    ScanLine walk(s, line);
    T total = 1;
    for (std::int64_t i = 0; i < s.n; ++i, walk.at += walk.step) {
      const T next = Mul{}(total, static_cast<const T*>(s.a)[walk.at]);
      static_cast<T*>(s.y)[walk.at] = s.exclusive ? total : next;
      total = next;
    }
  }
}

template <class T>
TAPEDECK_KERNEL void extremes_kernel(const Scan s) {
  for (std::int64_t line = thread_index(); line < s.lines; line += thread_count()) {
    ScanLine walk(s, line);
    T best = static_cast<const T*>(s.a)[walk.at];
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < s.n; ++i, walk.at += walk.step) {
      const T now = static_cast<const T*>(s.a)[walk.at];
      const bool beats = s.largest ? now >= best : now <= best;
      if (beats || now != now) {  // no number beats a NaN
        best = now;
        found = i;
      }
      static_cast<T*>(s.y)[walk.at] = best;
      s.index[walk.at] = found;
    }
  }
}

template <class T>
TAPEDECK_KERNEL void linear_kernel(const Scan s) {
  for (std::int64_t line = thread_index(); line < s.lines; line += thread_count()) {
    ScanLine walk(s, line);
    T last = 0;
    for (std::int64_t i = 0; i < s.n; ++i, walk.at += walk.step) {
      const T a = static_cast<const T*>(s.a)[walk.at], b = static_cast<const T*>(s.b)[walk.at];
      last = i == 0 ? b : b + a * last;
      static_cast<T*>(s.y)[walk.at] = last;
    }
  }
}

// `top` is the largest element so far, and `total` the sum of e^(x - top) over the elements so far.
template <class T>
TAPEDECK_KERNEL void exponents_kernel(const Scan s) {
  const T lowest = -std::numeric_limits<T>::infinity();
  for (std::int64_t line = thread_index(); line < s.lines; line += thread_count()) {
    ScanLine walk(s, line);
    T top = lowest, total = 0;
    for (std::int64_t i = 0; i < s.n; ++i, walk.at += walk.step) {
      const T x = static_cast<const T*>(s.a)[walk.at];
      if (x == top) {
        total += x == lowest ? T(0) : T(1);
      } else if (x > top) {
        total = total * exp_of(top - x) + T(1);
        top = x;
      } else {
        total += exp_of(x - top);
      }
      static_cast<T*>(s.y)[walk.at] = top + log_of(total);
    }
  }
}

Scan scan_of(const KernelCall& call, std::int64_t axis) {
  const View& x = call.inputs[0];
  Scan s{x.data, nullptr, call.outputs[0].data, nullptr, 0, x.sizes[axis], 1, false, false, false};
  s.inner = movement::product(x, static_cast<int>(axis) + 1, x.rank);
  s.lines = s.n == 0 ? 0 : movement::product(x, 0, static_cast<int>(axis)) * s.inner;
  return s;
}

Scan plain_scan_of(const KernelCall& call) {
  const auto& attrs = call.attributes<ScanAttrs>();
  Scan s = scan_of(call, attrs.axis);
  s.exclusive = attrs.exclusive;
  s.reverse = attrs.reverse;
  return s;
}

Scan linear_scan_of(const KernelCall& call) {
  const auto& attrs = call.attributes<LinearScanAttrs>();
  Scan s = scan_of(call, attrs.axis);
  s.reverse = attrs.reverse;
  return s;
}

void run_extremes(const KernelCall& call, bool largest) {
  Scan s = scan_of(call, call.attributes<AxisAttrs>().axis);
  s.index = call.outputs[1].as<std::int64_t>();
  s.largest = largest;
  for_numbers(call, call.inputs[0].dtype, [&](auto t) { launch(call, &extremes_kernel<decltype(t)>, for_items(s.lines), s); });
}

}  // namespace

void cumsum(const KernelCall& call) {
  const Scan s = plain_scan_of(call);
  for_numbers(call, call.inputs[0].dtype, [&](auto t) { launch(call, &sums_kernel<decltype(t)>, for_items(s.lines), s); });
}

void cumprod(const KernelCall& call) {
  const Scan s = plain_scan_of(call);
  for_numbers(call, call.inputs[0].dtype, [&](auto t) { launch(call, &products_kernel<decltype(t)>, for_items(s.lines), s); });
}

void cummax(const KernelCall& call) { run_extremes(call, true); }
void cummin(const KernelCall& call) { run_extremes(call, false); }

void linear_scan(const KernelCall& call) {
  Scan s = linear_scan_of(call);
  s.b = call.inputs[1].data;
  for_wide_floats(call, call.inputs[0].dtype,
                  [&](auto t) { launch(call, &linear_kernel<decltype(t)>, for_items(s.lines), s); });
}

void logcumsumexp(const KernelCall& call) {
  const Scan s = linear_scan_of(call);
  for_wide_floats(call, call.inputs[0].dtype,
                  [&](auto t) { launch(call, &exponents_kernel<decltype(t)>, for_items(s.lines), s); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
