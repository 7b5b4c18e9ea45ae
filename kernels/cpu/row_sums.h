// Maxima and sums of one row of n elements at a stride, for softmax and cross entropy. The order of additions depends on n
// alone.
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tapedeck::kernels::cpu {

inline constexpr int kRowLanes = 16;

// Adds the lanes pairwise: lane l and lane l + 8, then l and l + 4, and so on. Overwrites the lanes.
template <class T>
T add_lanes(T (&lane)[kRowLanes]) {
  for (int half = kRowLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

// The sum of f(0) ... f(n - 1). Lane l adds f(l), f(l + 16), f(l + 32), ...; then the lanes are added pairwise.
template <class T, class F>
T row_sum(std::int64_t n, F&& f) {
  T lane[kRowLanes] = {};
  std::int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    TAPEDECK_SHORT_LOOP
    for (int l = 0; l < kRowLanes; ++l) lane[l] += f(i + l);
  }
  for (; i < n; ++i) lane[i % kRowLanes] += f(i);
  return add_lanes(lane);
}

// The largest element of the row, or NaN if the row holds a NaN.
template <class T>
T row_max(const T* x, std::int64_t n, std::int64_t stride) {
  T lane[kRowLanes];
  std::fill(lane, lane + kRowLanes, -std::numeric_limits<T>::infinity());
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + kRowLanes <= n; i += kRowLanes) {
      TAPEDECK_SHORT_LOOP
      for (int l = 0; l < kRowLanes; ++l) lane[l] = Maximum{}(lane[l], x[i + l]);
    }
  }
  for (; i < n; ++i) lane[i % kRowLanes] = Maximum{}(lane[i % kRowLanes], x[i * stride]);
  for (int half = kRowLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] = Maximum{}(lane[l], lane[l + half]);
  return lane[0];
}

// The sum of e^(x - top), added in the same lanes as row_sum. Calls use(i, count, e) with the exponentials e[0 ... count) of
// the elements [i, i + count). Exponentials are computed kRowLanes at a time, so that short rows vectorise too.
template <class T, class F>
T row_exp_sum(const T* x, std::int64_t n, std::int64_t stride, T top, F&& use) {
  T lane[kRowLanes] = {};
  for (std::int64_t i = 0; i < n; i += kRowLanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(kRowLanes, n - i));
    T e[kRowLanes] = {};
    for (int l = 0; l < count; ++l) e[l] = x[(i + l) * stride] - top;
    if constexpr (sizeof(T) == 4) {
      TAPEDECK_SHORT_LOOP
      for (int l = 0; l < kRowLanes; ++l) e[l] = exp_of(e[l]);
    } else {
      for (int l = 0; l < count; ++l) e[l] = exp_of(e[l]);
    }
    for (int l = count; l < kRowLanes; ++l) e[l] = T(0);
    for (int l = 0; l < kRowLanes; ++l) lane[l] += e[l];
    use(i, count, e);
  }
  return add_lanes(lane);
}

// log(sum(exp(x))) as two numbers, top + rest. Their sum would round away the digits of the rest beside a large maximum: in
// f32, 1000 + log(2) keeps four of them. A row whose maximum is infinite gives NaN.
template <class T>
struct LogSumExp {
  T top, rest;
  T log_probability(T x) const { return (x - top) - rest; }
};

template <class T>
LogSumExp<T> log_sum_exp(const T* x, std::int64_t n, std::int64_t stride) {
  const T top = row_max(x, n, stride);
  return {top, log_of(row_exp_sum(x, n, stride, top, [](std::int64_t, int, const T*) {}))};
}

}  // namespace tapedeck::kernels::cpu
