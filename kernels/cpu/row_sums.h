// Maxima and sums of rows of n elements, for softmax, losses and attention. The order of additions depends on n alone: lane l
// of 16 adds the elements l, l + 16, l + 32, ..., and then the lanes are added pairwise.
//
// A row is computed in blocks of 256 elements in near memory, by loops that vectorise. Rows that lie side by side, [n, inner]
// with the row along n, are computed together: each step of a loop then takes the next element of up to 128 rows. Both ways add
// in the same order, so they give the same bits.
//
//       one row                               rows side by side
//       x x x x x x x x | x x x ...           x x x x x ...     element 0 of the rows
//       lanes 0 to 15   | lanes 0 to          x x x x x ...     element 1 of the rows
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/transpose.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tapedeck::kernels::cpu {

inline constexpr int kRowLanes = 16;
inline constexpr int kRowBlock = 256;

// Adds the lanes pairwise: lane l and lane l + 8, then l and l + 4, and so on. Overwrites the lanes.
template <class T>
T add_lanes(T (&lane)[kRowLanes]) {
  for (int half = kRowLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

// As many elements as fill a register of AVX2.
template <class T>
struct RegisterOf {
  typedef T type __attribute__((vector_size(32)));
};
template <class T>
using Register = typename RegisterOf<T>::type;

template <class T>
Register<T> load_register(const T* from) {
  Register<T> r;
  __builtin_memcpy(&r, from, sizeof r);
  return r;
}

template <class T>
void store_register(typename RegisterOf<T>::type r, T* to) {
  __builtin_memcpy(to, &r, sizeof r);
}

// A sum that takes its terms in blocks. The length of every block but the last is a multiple of 16.
template <class T>
class LaneSum {
 public:
  void add(const T* terms, std::int64_t n) {
    constexpr int kPart = 32 / sizeof(T);  // the lanes of one register: half or a quarter of all
    Register<T> a = load_register(lane_), b = load_register(lane_ + kPart), c{}, d{};
    if constexpr (kRowLanes == 4 * kPart) c = load_register(lane_ + 2 * kPart), d = load_register(lane_ + 3 * kPart);
    std::int64_t i = 0;
    for (; i + kRowLanes <= n; i += kRowLanes) {
      a += load_register(terms + i);
      b += load_register(terms + i + kPart);
      if constexpr (kRowLanes == 4 * kPart) {
        c += load_register(terms + i + 2 * kPart);
        d += load_register(terms + i + 3 * kPart);
      }
    }
    store_register(a, lane_);
    store_register(b, lane_ + kPart);
    if constexpr (kRowLanes == 4 * kPart) {
      store_register(c, lane_ + 2 * kPart);
      store_register(d, lane_ + 3 * kPart);
    }
    for (int l = 0; i < n; ++i, ++l) lane_[l] += terms[i];
  }
  T total() { return add_lanes(lane_); }

 private:
  T lane_[kRowLanes] = {};
};

// The sum of f(0) ... f(n - 1).
template <class T, class F>
T row_sum(std::int64_t n, F&& f) {
  LaneSum<T> sum;
  for (std::int64_t i = 0; i < n; i += kRowBlock) {
    const std::int64_t count = std::min<std::int64_t>(kRowBlock, n - i);
    T terms[kRowBlock];
    for (std::int64_t k = 0; k < count; ++k) terms[k] = f(i + k);
    sum.add(terms, count);
  }
  return sum.total();
}

// The largest (or smallest) number of x[0, n), without NaN: infinity if there is none. Sets `has_nan` if there is a NaN.
template <bool kLargest, class T>
T dense_extreme(const T* x, std::int64_t n, bool* has_nan) {
  using Limits = std::numeric_limits<T>;
  constexpr T kHighest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  constexpr T kStart = !kLargest ? kHighest : Limits::has_infinity ? -kHighest : Limits::lowest();
  constexpr int kPart = 32 / sizeof(T), kStep = 4 * kPart;
  T best = kStart;
  const auto take = [&](T a) { best = (kLargest ? a > best : a < best) ? a : best; };
  const auto better = [](Register<T> a, Register<T> b) { return (kLargest ? a > b : a < b) ? a : b; };
  std::int64_t i = 0;
  if (n >= kStep) {
    Register<T> a = Register<T>{} + kStart, b = a, c = a, d = a;
    auto nan = a != a;
    for (; i + kStep <= n; i += kStep) {
      const Register<T> p = load_register(x + i), q = load_register(x + i + kPart), r = load_register(x + i + 2 * kPart),
                        s = load_register(x + i + 3 * kPart);
      a = better(p, a);
      b = better(q, b);
      c = better(r, c);
      d = better(s, d);
      nan |= ((p != p) | (q != q)) | ((r != r) | (s != s));
    }
    const Register<T> all = better(better(a, b), better(c, d));
    for (int l = 0; l < kPart; ++l) {
      take(all[l]);
      *has_nan |= nan[l] != 0;
    }
  }
  for (; i < n; ++i) {
    take(x[i]);
    *has_nan |= x[i] != x[i];
  }
  return best;
}

// The largest element of the row, or NaN if the row holds a NaN.
template <class T>
T row_max(const T* x, std::int64_t n, std::int64_t stride) {
  if (stride == 1) {
    bool has_nan = false;
    const T best = dense_extreme<true>(x, n, &has_nan);
    return has_nan ? std::numeric_limits<T>::quiet_NaN() : best;
  }
  T best = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < n; ++i) best = Maximum{}(best, x[i * stride]);
  return best;
}

// The sum of e^(x - top), added in the same lanes as row_sum. Calls use(i, count, e) with the exponentials e[0 ... count) of
// the elements [i, i + count). Exponentials are computed kRowLanes at a time, so that short rows vectorise too.
template <class T, class F>
T row_exp_sum(const T* x, std::int64_t n, std::int64_t stride, T top, F&& use) {
  LaneSum<T> sum;
  for (std::int64_t i = 0; i < n; i += kRowBlock) {
    const int count = static_cast<int>(std::min<std::int64_t>(kRowBlock, n - i));
    const int rounded = sizeof(T) == 4 ? (count + kRowLanes - 1) / kRowLanes * kRowLanes : count;
    T e[kRowBlock];
    if (stride == 1)
      for (int l = 0; l < count; ++l) e[l] = x[i + l] - top;
    else
      for (int l = 0; l < count; ++l) e[l] = x[(i + l) * stride] - top;
    for (int l = count; l < rounded; ++l) e[l] = T(0);
    for (int l = 0; l < rounded; ++l) e[l] = exp_of(e[l]);
    sum.add(e, count);
    use(i, count, e);
  }
  return sum.total();
}

// ---- several rows ----

inline constexpr std::int64_t kMostLines = 128;
inline constexpr std::int64_t kLeastSideBySide = 8;

// `width` rows, at most kMostLines, in a view [outer, n, inner]. Element i of row j lies at `at + i * stride + j * step`.
struct Lines {
  std::int64_t at, n, stride, step, width;

  bool side_by_side() const { return step == 1 && stride >= kLeastSideBySide; }
};

// Calls f(offset, i, value(j)) for all elements i of all rows j. The order of the calls does not matter. value(j) is read once
// per row where a row is walked alone.
template <class V, class F>
void for_elements(const Lines& s, const V& value, const F& f) {
  if (s.side_by_side()) {
    for (std::int64_t i = 0; i < s.n; ++i) {
      const std::int64_t at = s.at + i * s.stride;
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < s.width; ++j) f(at + j, i, value(j));
    }
    return;
  }
  for (std::int64_t j = 0; j < s.width; ++j) {
    const std::int64_t at = s.at + j * s.step;
    const auto of_row = value(j);
    if (s.stride == 1) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t i = 0; i < s.n; ++i) f(at + i, i, of_row);
    } else {
      for (std::int64_t i = 0; i < s.n; ++i) f(at + i * s.stride, i, of_row);
    }
  }
}

// Sets total[j] to the sum of f(offset, i, value(j)) over the elements i of row j.
template <class T, class V, class F>
void line_sums(const Lines& s, T* total, const V& value, const F& f) {
  if (!s.side_by_side()) {
    for (std::int64_t j = 0; j < s.width; ++j) {
      const std::int64_t at = s.at + j * s.step;
      const auto of_row = value(j);
      if (s.stride == 1)
        total[j] = row_sum<T>(s.n, [&](std::int64_t i) { return f(at + i, i, of_row); });
      else
        total[j] = row_sum<T>(s.n, [&](std::int64_t i) { return f(at + i * s.stride, i, of_row); });
    }
    return;
  }
  // A row of fewer elements than lanes leaves the other lanes at 0, and adding 0 to the sum of a lane changes no bit: a sum
  // that begins with +0 is never -0.
  T lane[kRowLanes][kMostLines];
  std::int64_t lanes = std::min<std::int64_t>(s.n, kRowLanes);
  if (lanes == 0) std::fill(total, total + s.width, T(0));
  for (std::int64_t i = 0; i < s.n; ++i) {
    T* sums = lane[i % kRowLanes];
    const std::int64_t at = s.at + i * s.stride;
    if (i < kRowLanes) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < s.width; ++j) sums[j] = T(0) + f(at + j, i, value(j));
    } else {
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < s.width; ++j) sums[j] += f(at + j, i, value(j));
    }
  }
  for (std::int64_t half = kRowLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l + half < lanes; ++l)
      for (std::int64_t j = 0; j < s.width; ++j) lane[l][j] += lane[l + half][j];
    lanes = std::min(lanes, half);
  }
  if (s.n > 0) std::copy(lane[0], lane[0] + s.width, total);
}

// Sets top[j] to the largest element of row j, or to NaN if the row holds a NaN.
template <class T>
void line_maxima(const Lines& s, const T* x, T* top) {
  if (!s.side_by_side()) {
    for (std::int64_t j = 0; j < s.width; ++j) top[j] = row_max(x + s.at + j * s.step, s.n, s.stride);
    return;
  }
  std::fill(top, top + s.width, -std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < s.n; ++i) {
    const T* row = x + s.at + i * s.stride;
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < s.width; ++j) top[j] = Maximum{}(top[j], row[j]);
  }
}

// Sets total[j] to the sum of e^(x - top[j]) over row j. Writes the exponentials to `e`, at the offsets of the elements, unless
// e is null; e may be x.
template <class T>
void line_exp_sums(const Lines& s, const T* x, const T* top, T* e, T* total) {
  if (s.side_by_side()) {
    const auto top_of = [top](std::int64_t j) { return top[j]; };
    if (e)
      line_sums(s, total, top_of, [=](std::int64_t at, std::int64_t, T largest) { return e[at] = exp_of(x[at] - largest); });
    else
      line_sums(s, total, top_of, [=](std::int64_t at, std::int64_t, T largest) { return exp_of(x[at] - largest); });
    return;
  }
  for (std::int64_t j = 0; j < s.width; ++j) {
    const std::int64_t at = s.at + j * s.step;
    total[j] = row_exp_sum(x + at, s.n, s.stride, top[j], [&](std::int64_t i, int count, const T* block) {
      if (!e) return;
      if (s.stride == 1)
        std::copy(block, block + count, e + at + i);
      else
        for (int l = 0; l < count; ++l) e[at + (i + l) * s.stride] = block[l];
    });
  }
}

// log(sum(exp(x))) as two numbers, top + rest. Their sum would round away the digits of the rest beside a large maximum: in
// f32, 1000 + log(2) keeps four of them. A row whose maximum is infinite gives NaN.
template <class T>
struct LogSumExp {
  T top, rest;
  T log_probability(T x) const { return (x - top) - rest; }
};

// LogSumExp of several rows.
template <class T>
class LineLogSumExp {
 public:
  LineLogSumExp(const Lines& s, const T* x) {
    line_maxima(s, x, top_);
    line_exp_sums(s, x, top_, static_cast<T*>(nullptr), rest_);
    for (std::int64_t j = 0; j < s.width; ++j) rest_[j] = log_of(rest_[j]);
  }
  LogSumExp<T> operator()(std::int64_t row) const { return {top_[row], rest_[row]}; }

 private:
  T top_[kMostLines], rest_[kMostLines];
};

// ---- short rows, turned around ----

inline constexpr std::int64_t kShortLine = 32;

// Calls body(lines, in, out). The rows of the operands `in` and of the result `out` lie as `s` says. Many short contiguous rows
// are turned around in near memory first, so that they lie side by side; then in[0] and `out` are the same memory.
template <class T, std::size_t kInputs, class Body>
void with_long_loops(const Lines& s, const std::array<const T*, kInputs>& in, T* out, const Body& body) {
  if (sizeof(T) != 4 || s.stride != 1 || s.step != s.n || s.n > kShortLine || s.width < kLeastSideBySide)
    return body(s, in, out);
  T turned[kInputs][kShortLine * kMostLines];
  std::array<const T*, kInputs> from;
  for (std::size_t k = 0; k < kInputs; ++k) {
    transpose(in[k] + s.at, s.n, turned[k], kMostLines, s.n, s.width);
    from[k] = turned[k];
  }
  body(Lines{0, s.n, kMostLines, 1, s.width}, from, turned[0]);
  if (out) transpose(turned[0], kMostLines, out + s.at, s.n, s.width, s.n);
}

}  // namespace tapedeck::kernels::cpu
