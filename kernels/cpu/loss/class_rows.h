// Rows of class scores [n, classes, ...] against labels [n, ...], and their losses and gradients, for the losses of this room.
//
// A row is the scores of one label; its elements lie `inner` elements apart. Up to 128 rows are computed together (row_sums.h).
// A sum over rows is cut into pieces by the number of rows alone. Each piece is summed in the lanes of row_sums.h, and the sums
// of the pieces are added pairwise.
#pragma once

#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cpu/products/half_rows.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <cstdint>

namespace tapedeck::kernels::cpu {

inline constexpr std::int64_t kMaxPieces = 64;

enum class Reduction { none, mean, sum };
inline Reduction reduction_of(Name name) {
  return name.view() == "none" ? Reduction::none : name.view() == "sum" ? Reduction::sum : Reduction::mean;
}

inline float widened(float x) { return x; }
inline double widened(double x) { return x; }
inline float widened(F16 x) { return to_f32(x); }
inline float widened(Bf16 x) { return to_f32(x); }

// Scores [n, classes, inner], labels [n, inner], and optionally one weight per class, of type W. T is the type of sums.
template <class T, class Label, class W = T>
struct ClassRows {
  std::int64_t rows = 1, classes = 1, inner = 1, ignore_index = 0;
  const Label* labels = nullptr;
  const W* weights = nullptr;
  KernelFault* fault = nullptr;

  ClassRows(const KernelCall& call, const View& scores, int label_operand, int weight_operand, std::int64_t ignored)
      : classes(scores.sizes[1]), ignore_index(ignored), labels(call.inputs[label_operand].as<Label>()), fault(call.fault) {
    for (int d = 2; d < scores.rank; ++d) inner *= scores.sizes[d];
    rows = scores.sizes[0] * inner;
    if (weight_operand < call.n_inputs) weights = call.inputs[weight_operand].as<W>();
  }
  std::int64_t offset(std::int64_t row) const {
    return inner == 1 ? row * classes : row / inner * classes * inner + row % inner;
  }
  // Calls body(first row, lines) for the rows [begin, end), in order, many rows at a time.
  template <class Body>
  void for_lines(std::int64_t begin, std::int64_t end, const Body& body) const {
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t together = inner == 1 ? end - row : std::min(end - row, inner - row % inner);
      const std::int64_t width = std::min(together, kMostLines);
      body(row, Lines{offset(row), classes, inner, inner == 1 ? classes : 1, width});
      row += width;
    }
  }
  // The label of a row, or -1 if the row is ignored. A label out of range is reported, and the row is ignored.
  std::int64_t label(std::int64_t row) const {
    const std::int64_t label = labels[row];
    if (label == ignore_index) return -1;
    if (label >= 0 && label < classes) return label;
    fault->report("label out of range", label);
    return -1;
  }
  // The rows of one piece of work: enough of them that rows which lie side by side are computed together.
  std::int64_t grain(double ns_per_element, double ns_per_row) const {
    const std::int64_t rows = grain_for(ns_per_element * static_cast<double>(classes) + ns_per_row);
    return std::max(rows, std::min(inner, kMostLines));
  }
  T weight(std::int64_t label) const { return weights ? widened(weights[label]) : T(1); }
};

// The sum over all rows. fill(begin, end, terms) writes the terms of the rows [begin, end), at most kRowBlock of them. Threads
// sum the pieces; then the sums are added pairwise: i and i + 32, then i and i + 16, and so on.
template <class T, class F>
T sum_rows(std::int64_t rows, F&& fill) {
  const std::int64_t piece = std::max<std::int64_t>(256, (rows + kMaxPieces - 1) / kMaxPieces);
  T parts[kMaxPieces] = {};
  parallel_for(rows, piece, [&](std::int64_t begin, std::int64_t end) {
    LaneSum<T> sum;
    for (std::int64_t at = begin; at < end; at += kRowBlock) {
      const std::int64_t count = std::min<std::int64_t>(kRowBlock, end - at);
      T terms[kRowBlock];
      fill(at, at + count, terms);
      sum.add(terms, count);
    }
    parts[begin / piece] = sum.total();
  });
  for (std::int64_t half = kMaxPieces / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
}

// The divisor of a mean: the sum of the weights of all labels that are not ignored.
template <class T, class Label, class W>
T total_weight(const ClassRows<T, Label, W>& r) {
  if (!r.weights) {
    return static_cast<T>(sum_rows<std::int64_t>(r.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t* counted) {
      for (std::int64_t i = begin; i < end; ++i) *counted++ = r.label(i) >= 0;
    }));
  }
  return sum_rows<T>(r.rows, [&](std::int64_t begin, std::int64_t end, T* weights) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t label = r.label(i);
      *weights++ = label < 0 ? T(0) : r.weight(label);
    }
  });
}

// The sum or the mean of the losses of all rows. losses(begin, end, out) writes the losses of the rows [begin, end).
template <class T, class Label, class W, class F>
T reduced_loss(const ClassRows<T, Label, W>& r, Reduction reduction, const F& losses) {
  const T total = sum_rows<T>(r.rows, losses);
  return reduction == Reduction::sum ? total : total / total_weight(r);
}

// Writes the loss of every row, or the sum or the mean of all losses.
template <class T, class Label, class W, class F>
void reduce_rows(const KernelCall& call, const ClassRows<T, Label, W>& r, Reduction reduction, std::int64_t grain, F&& losses) {
  T* out = call.outputs[0].as<T>();
  if (reduction == Reduction::none) {
    parallel_for(r.rows, grain, [&](std::int64_t begin, std::int64_t end) { losses(begin, end, out + begin); });
    return;
  }
  *out = reduced_loss(r, reduction, losses);
}

// The factor of a row's gradient: the gradient of its loss, divided by the divisor of a mean.
template <class T>
struct RowScale {
  View dloss;
  bool per_row;
  T of_all;  // if all rows have the same factor
  T operator()(std::int64_t row) const { return per_row ? number_at<T>(dloss, row) : of_all; }
};
template <class T, class Label, class W>
RowScale<T> row_scale(const ClassRows<T, Label, W>& r, const View& dloss, Reduction reduction) {
  if (reduction == Reduction::none) return {dloss, true, T(0)};
  const T d = number_at<T>(dloss, 0);
  return {dloss, false, reduction == Reduction::mean ? d / total_weight(r) : d};
}

// ---- cross entropy of some rows ----

// -(1 - s) w[label] log p[label] - s / classes * sum of w log p, where s is the smoothing and p = softmax(x), for some rows.
template <class T, class Label, class W>
void line_losses(const ClassRows<T, Label, W>& r, const T* x, std::int64_t first, const Lines& s, T smoothing, T* out) {
  const LineLogSumExp<T> total(s, x);
  T soft[kMostLines];
  if (smoothing != T(0)) {
    const W* weights = r.weights;
    if (weights)
      line_sums(s, soft, total, [x, weights](std::int64_t at, std::int64_t k, const LogSumExp<T>& of_row) {
        return widened(weights[k]) * -of_row.log_probability(x[at]);
      });
    else
      line_sums(s, soft, total,
                [x](std::int64_t at, std::int64_t, const LogSumExp<T>& of_row) { return -of_row.log_probability(x[at]); });
  }
  for (std::int64_t j = 0; j < s.width; ++j) {
    const std::int64_t label = r.label(first + j);
    const T hard = label < 0 ? T(0) : -total(j).log_probability(x[s.at + label * s.stride + j * s.step]);
    if (label < 0 || smoothing == T(0))
      out[j] = label < 0 ? T(0) : r.weights ? r.weight(label) * hard : hard;
    else
      out[j] = (T(1) - smoothing) * r.weight(label) * hard + smoothing / static_cast<T>(r.classes) * soft[j];
  }
}

// The factors of the gradient of a row: `factor` times e^(x - top), less `slope` times the weight of the class.
template <class T>
struct RowFactors {
  T factor, slope;
};

// dx = scale (total p - (1 - s) w[label] one_hot(label) - s / classes * w), where p = softmax(x) and `total` is the sum of the
// weights in the smoothed target, for some rows. Rows that are ignored have gradient 0.
template <class T, class Label, class W>
void line_gradients(const ClassRows<T, Label, W>& r, const T* x, T* dx, std::int64_t first, const Lines& s,
                    const RowScale<T>& row_scale, T smoothing, T all_weights) {
  T top[kMostLines], sum[kMostLines], at_label[kMostLines], factor[kMostLines], slope[kMostLines], weight[kMostLines],
      scale[kMostLines];
  std::int64_t labels[kMostLines];
  if (s.n == 0) return;
  line_maxima(s, x, top);
  line_exp_sums(s, x, top, dx, sum);
  for (std::int64_t j = 0; j < s.width; ++j) {
    const std::int64_t label = labels[j] = r.label(first + j), any = label < 0 ? 0 : label;
    weight[j] = r.weight(any);
    scale[j] = row_scale(first + j);
    at_label[j] = dx[s.at + any * s.stride + j * s.step];
  }
  const T each = smoothing / static_cast<T>(r.classes);
  for (std::int64_t j = 0; j < s.width; ++j) {
    const T hard = (T(1) - smoothing) * weight[j], total = hard + each * all_weights;
    factor[j] = total / sum[j] * scale[j];
    slope[j] = each * scale[j];
    at_label[j] = (at_label[j] / sum[j] * total - each * weight[j] - hard) * scale[j];
  }
  const auto factors_of = [&](std::int64_t j) { return RowFactors<T>{factor[j], slope[j]}; };
  const W* weights = r.weights;
  if (smoothing == T(0))
    for_elements(s, factors_of, [dx](std::int64_t at, std::int64_t, RowFactors<T> f) { dx[at] *= f.factor; });
  else if (weights)
    for_elements(s, factors_of, [dx, weights](std::int64_t at, std::int64_t k, RowFactors<T> f) {
      dx[at] = dx[at] * f.factor - f.slope * widened(weights[k]);
    });
  else
    for_elements(s, factors_of, [dx](std::int64_t at, std::int64_t, RowFactors<T> f) { dx[at] = dx[at] * f.factor - f.slope; });
  for (std::int64_t j = 0; j < s.width; ++j) {
    T* line = dx + s.at + j * s.step;
    if (labels[j] >= 0)
      line[labels[j] * s.stride] = at_label[j];
    else
      for (std::int64_t k = 0; k < s.n; ++k) line[k * s.stride] = T(0);
  }
}

}  // namespace tapedeck::kernels::cpu
