// Scans as objects that keep the state of up to kStripWidth lines side by side, and contiguous lines walked side by side.
//
// A scan takes its elements one after the other, so a line alone leaves most of a processor idle. Many contiguous lines are
// turned around in near memory, kChunk elements of kTogether lines at a time. Each line still meets its own elements in the
// same order, so both ways give the same bits.
//
//       a a a a a ...                a b c ...     step 0 of the lines
//       b b b b b ...      ->        a b c ...     step 1
//       c c c c c ...                a b c ...     step 2
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/transpose.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {

// The number of neighbouring lines that are walked together: wide enough for the prefetcher.
inline constexpr std::int64_t kStripWidth = 512;
inline constexpr std::int64_t kTogether = 16, kChunk = 64, kLeastTogether = 8;

// The width of lines that are walked together, as a type: loops over it have a fixed number of steps, and their state stays in
// registers.
using Together = std::integral_constant<std::int64_t, kTogether>;

// y = Step(y of the element before, x). An exclusive scan writes the value before the step.
template <class Step, bool kExclusive, class T>
class FoldScan {
 public:
  FoldScan(std::int64_t width, T start) { std::fill(total_, total_ + width, start); }

  // Walks n steps of `width` lines. Step i of line j lies at i * stride + j; y may be x.
  void walk(std::int64_t n, const T* x, T* y, std::int64_t stride, std::int64_t width) {
    if (width == 1) {
      T total = total_[0];
      for (std::int64_t i = 0; i < n; ++i, x += stride, y += stride) *y = step(total, *x);
      total_[0] = total;
      return;
    }
    if (width != kTogether) return steps(n, x, y, stride, width, total_);
    T total[kTogether];
    std::copy(total_, total_ + kTogether, total);
    steps(n, x, y, stride, Together{}, total);
    std::copy(total, total + kTogether, total_);
  }

 private:
  template <class Width>
  static void steps(std::int64_t n, const T* x, T* y, std::int64_t stride, Width width, T* total) {
    const std::int64_t lines = width;
    for (std::int64_t i = 0; i < n; ++i, x += stride, y += stride) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < lines; ++j) y[j] = step(total[j], x[j]);
    }
  }
  static T step(T& total, T x) {
    const T before = total;
    total = Step{}(before, x);
    return kExclusive ? before : total;
  }

  T total_[kStripWidth];
};

// y = log of the sum of e^x so far, kept as the largest element so far and the sum of e^(x - largest).
template <class T>
class ExpScan {
 public:
  explicit ExpScan(std::int64_t width) {
    std::fill(top_, top_ + width, -std::numeric_limits<T>::infinity());
    std::fill(total_, total_ + width, T(0));
  }

  void walk(std::int64_t n, const T* x, T* y, std::int64_t stride, std::int64_t width) {
    if (width == 1) return walk_one(n, x, y, stride);
    if (width != kTogether) return steps(n, x, y, stride, width, top_, total_);
    T top[kTogether], total[kTogether];
    std::copy(top_, top_ + kTogether, top);
    std::copy(total_, total_ + kTogether, total);
    steps(n, x, y, stride, Together{}, top, total);
    std::copy(top, top + kTogether, top_);
    std::copy(total, total + kTogether, total_);
  }

 private:
  template <class Width>
  static void steps(std::int64_t n, const T* x, T* y, std::int64_t stride, Width width, T* top, T* total) {
    const std::int64_t lines = width;
    for (std::int64_t i = 0; i < n; ++i, x += stride, y += stride) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < lines; ++j) {
        const T next = x[j], before = top[j];
        total[j] = sum(total[j], exp_of(gap(next, before)), next > before);
        top[j] = next > before ? next : before;
      }
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < lines; ++j) y[j] = top[j] + log_of(total[j]);
    }
  }

  // -|x - top|, which gives the factor of the sum if x is larger, else the term to add. Two infinities are equal, and a sum of
  // e^-inf stays 0.
  static T gap(T x, T top) {
    const T inf = std::numeric_limits<T>::infinity();
    const T same = x == -inf ? -inf : T(0), between = x > top ? top - x : x - top;
    return x == top ? same : between;
  }
  static T sum(T total, T e, bool rises) {
    const T scaled = total * e + T(1), added = total + e;
    return rises ? scaled : added;
  }

  // One line: the exponentials and the logarithms of a chunk are computed together.
  void walk_one(std::int64_t n, const T* x, T* y, std::int64_t stride) {
    constexpr std::int64_t kPart = 4 * kChunk;
    T top = top_[0], total = total_[0];
    for (std::int64_t first = 0; first < n; first += kPart) {
      const std::int64_t count = std::min(kPart, n - first);
      T tops[kPart], e[kPart];
      bool rises[kPart];
      for (std::int64_t i = 0; i < count; ++i) {
        const T next = x[i * stride];
        e[i] = gap(next, top);
        rises[i] = next > top;
        tops[i] = top = rises[i] ? next : top;
      }
      for (std::int64_t i = 0; i < count; ++i) e[i] = exp_of(e[i]);
      for (std::int64_t i = 0; i < count; ++i) e[i] = total = sum(total, e[i], rises[i]);
      for (std::int64_t i = 0; i < count; ++i) e[i] = tops[i] + log_of(e[i]);
      for (std::int64_t i = 0; i < count; ++i) y[i * stride] = e[i];
      x += count * stride;
      y += count * stride;
    }
    top_[0] = top;
    total_[0] = total;
  }

  T top_[kStripWidth], total_[kStripWidth];
};

// The best element so far and the number of its step, as a Count. A NaN is better than every number; among equals the last
// wins.
template <class Beats, class T, class Count>
class ExtremeScan {
 public:
  explicit ExtremeScan(std::int64_t width) {
    std::fill(best_, best_ + width, T(0));
    std::fill(found_, found_ + width, Count(0));
  }

  // The results y and `index` of step i of line j lie at i * stride + j, as x does.
  template <class Index>
  void walk(std::int64_t n, const T* x, T* y, Index* index, std::int64_t stride, std::int64_t width) {
    if (done_ == 0 && n > 0) std::copy(x, x + width, best_);
    if (width != kTogether) {
      steps(n, x, y, index, stride, width, best_, found_);
    } else {
      T best[kTogether];
      Count found[kTogether];
      std::copy(best_, best_ + kTogether, best);
      std::copy(found_, found_ + kTogether, found);
      steps(n, x, y, index, stride, Together{}, best, found);
      std::copy(best, best + kTogether, best_);
      std::copy(found, found + kTogether, found_);
    }
    done_ += n;
  }

 private:
  template <class Width, class Index>
  void steps(std::int64_t n, const T* x, T* y, Index* index, std::int64_t stride, Width width, T* best, Count* found) const {
    const std::int64_t lines = width;
    for (std::int64_t i = 0; i < n; ++i, x += stride, y += stride, index += stride) {
      const Count now = static_cast<Count>(done_ + i);
      TAPEDECK_INDEPENDENT
      for (std::int64_t j = 0; j < lines; ++j) {
        const T next = x[j], before = best[j];
        const Count at = found[j];
        const bool beats = Beats{}(next, before) != 0, no_number = next != next;
        y[j] = best[j] = (beats | no_number) ? next : before;
        index[j] = found[j] = (beats | no_number) ? now : at;
      }
    }
  }

  std::int64_t done_ = 0;
  T best_[kStripWidth];
  Count found_[kStripWidth];
};

// Scans `lines` <= kTogether contiguous lines of n elements of four bytes, turned around in chunks.
template <class Scan, class T>
void scan_together(Scan& scan, std::int64_t n, std::int64_t lines, bool reverse, const T* x, T* y) {
  T chunk[kChunk * kTogether];
  for (std::int64_t done = 0; done < n; done += kChunk) {
    const std::int64_t count = std::min(kChunk, n - done), lowest = reverse ? n - done - count : done;
    transpose(x + lowest, n, chunk, kTogether, count, lines);
    T* first = reverse ? chunk + (count - 1) * kTogether : chunk;
    scan.walk(count, first, first, reverse ? -kTogether : kTogether, lines);
    transpose(chunk, kTogether, y + lowest, n, lines, count);
  }
}

// The same for the best elements and their steps, of which there are fewer than 2^31.
template <class Scan, class T>
void extremes_together(Scan& scan, std::int64_t n, std::int64_t lines, const T* x, T* y, std::int64_t* index) {
  T chunk[kChunk * kTogether];
  std::int32_t found[kChunk * kTogether], of_lines[kTogether * kChunk];
  for (std::int64_t done = 0; done < n; done += kChunk) {
    const std::int64_t count = std::min(kChunk, n - done);
    transpose(x + done, n, chunk, kTogether, count, lines);
    scan.walk(count, chunk, chunk, found, kTogether, lines);
    transpose(chunk, kTogether, y + done, n, lines, count);
    transpose(found, kTogether, of_lines, kChunk, lines, count);
    for (std::int64_t j = 0; j < lines; ++j)
      std::copy(of_lines + j * kChunk, of_lines + j * kChunk + count, index + j * n + done);
  }
}

}  // namespace tapedeck::kernels::cpu
