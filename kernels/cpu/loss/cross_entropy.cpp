// cross_entropy and nll_loss, and their gradients: losses of rows of class scores [n, classes, ...] against labels [n, ...].
//
// A row is the scores of one label; its elements lie `inner` elements apart. A sum over rows is cut into pieces by the number
// of rows alone. Each piece is summed by row_sum() (row_sums.h), and the sums of the pieces are added pairwise.
#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kMaxPieces = 64;

enum class Reduction { none, mean, sum };
Reduction reduction_of(Name name) {
  return name.view() == "none" ? Reduction::none : name.view() == "sum" ? Reduction::sum : Reduction::mean;
}

// Scores [n, classes, inner], labels [n, inner], and optionally one weight per class.
template <class T, class Label>
struct Rows {
  std::int64_t rows = 1, classes = 1, inner = 1, ignore_index = 0;
  const Label* labels = nullptr;
  const T* weights = nullptr;
  KernelFault* fault = nullptr;

  Rows(const KernelCall& call, const View& scores, int label_operand, int weight_operand, std::int64_t ignored)
      : classes(scores.sizes[1]), ignore_index(ignored), labels(call.inputs[label_operand].as<Label>()), fault(call.fault) {
    for (int d = 2; d < scores.rank; ++d) inner *= scores.sizes[d];
    rows = scores.sizes[0] * inner;
    if (weight_operand < call.n_inputs) weights = call.inputs[weight_operand].as<T>();
  }
  std::int64_t offset(std::int64_t row) const {
    return inner == 1 ? row * classes : row / inner * classes * inner + row % inner;
  }
  // The label of a row, or -1 if the row is ignored. A label out of range is reported, and the row is ignored.
  std::int64_t label(std::int64_t row) const {
    const std::int64_t label = labels[row];
    if (label == ignore_index) return -1;
    if (label >= 0 && label < classes) return label;
    fault->report("label out of range", label);
    return -1;
  }
  T weight(std::int64_t label) const { return weights ? weights[label] : T(1); }
};

// The sum of f(0) ... f(rows - 1). Threads sum the pieces; then the sums are added pairwise: i and i + 32, then i and i + 16,
// and so on.
template <class T, class F>
T sum_rows(std::int64_t rows, F&& f) {
  const std::int64_t piece = std::max<std::int64_t>(256, (rows + kMaxPieces - 1) / kMaxPieces);
  T parts[kMaxPieces] = {};
  parallel_for(rows, piece, [&](std::int64_t begin, std::int64_t end) {
    parts[begin / piece] = row_sum<T>(end - begin, [&](std::int64_t i) { return f(begin + i); });
  });
  for (std::int64_t half = kMaxPieces / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
}

// The divisor of a mean: the sum of the weights of all labels that are not ignored.
template <class T, class Label>
T total_weight(const Rows<T, Label>& r) {
  if (!r.weights)
    return static_cast<T>(sum_rows<std::int64_t>(r.rows, [&](std::int64_t i) { return std::int64_t{r.label(i) >= 0}; }));
  return sum_rows<T>(r.rows, [&](std::int64_t i) {
    const std::int64_t label = r.label(i);
    return label < 0 ? T(0) : r.weights[label];
  });
}

// Writes the loss of every row, or the sum or the mean of all losses.
template <class T, class Label, class F>
void reduce_rows(const KernelCall& call, const Rows<T, Label>& r, Reduction reduction, double ns_per_row, F&& loss) {
  T* out = call.outputs[0].as<T>();
  if (reduction == Reduction::none) {
    parallel_for(r.rows, grain_for(ns_per_row), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = loss(i);
    });
    return;
  }
  const T total = sum_rows<T>(r.rows, loss);
  *out = reduction == Reduction::sum ? total : total / total_weight(r);
}

// The factor of a row's gradient: the gradient of its loss, divided by the divisor of a mean.
template <class T>
struct RowScale {
  const T* dloss;
  T divisor;
  bool per_row;
  T operator()(std::int64_t row) const { return per_row ? dloss[row] : *dloss / divisor; }
};
template <class T, class Label>
RowScale<T> row_scale(const Rows<T, Label>& r, const View& dloss, Reduction reduction) {
  return {dloss.as<T>(), reduction == Reduction::mean ? total_weight(r) : T(1), reduction == Reduction::none};
}

// ---- cross entropy ----

// -(1 - s) w[label] log p[label] - s / classes * sum of w log p, where s is the smoothing and p = softmax(x).
template <class T, class Label>
T row_loss(const Rows<T, Label>& r, const T* scores, std::int64_t row, T smoothing) {
  const std::int64_t label = r.label(row);
  if (label < 0) return T(0);
  const T* x = scores + r.offset(row);
  const LogSumExp<T> total = log_sum_exp(x, r.classes, r.inner);
  const T hard = -total.log_probability(x[label * r.inner]);
  if (smoothing == T(0)) return r.weights ? r.weights[label] * hard : hard;
  const T soft = row_sum<T>(r.classes, [&](std::int64_t k) { return r.weight(k) * -total.log_probability(x[k * r.inner]); });
  return (T(1) - smoothing) * r.weight(label) * hard + smoothing / static_cast<T>(r.classes) * soft;
}

// dx = scale (total p - (1 - s) w[label] one_hot(label) - s / classes * w), where p = softmax(x) and `total` is the sum of the
// weights in the smoothed target.
template <class T, class Label>
void row_gradient(const Rows<T, Label>& r, const T* x, T* dx, std::int64_t label, T scale, T smoothing, T all_weights) {
  const std::int64_t n = r.classes, step = r.inner;
  if (label < 0) {
    for (std::int64_t i = 0; i < n; ++i) dx[i * step] = T(0);
    return;
  }
  const T top = row_max(x, n, step);
  const T sum = row_exp_sum(x, n, step, top, [&](std::int64_t i, int count, const T* e) {
    for (int l = 0; l < count; ++l) dx[(i + l) * step] = e[l];
  });
  const T hard = (T(1) - smoothing) * r.weight(label), each = smoothing / static_cast<T>(n), total = hard + each * all_weights;
  if (smoothing == T(0) && !r.weights) {
    for (std::int64_t i = 0; i < n; ++i) dx[i * step] /= sum;
  } else {
    for (std::int64_t i = 0; i < n; ++i) dx[i * step] = dx[i * step] / sum * total - each * r.weight(i);
  }
  dx[label * step] -= hard;
  for (std::int64_t i = 0; i < n; ++i) dx[i * step] *= scale;
}

template <class T, class Label>
void cross_entropy_of(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const Rows<T, Label> r(call, call.inputs[0], 1, 2, attrs.ignore_index);
  const T* scores = call.inputs[0].as<T>();
  const T smoothing = static_cast<T>(attrs.label_smoothing);
  reduce_rows(call, r, reduction_of(attrs.reduction), 1.5 * static_cast<double>(r.classes) + 10,
              [&](std::int64_t i) { return row_loss(r, scores, i, smoothing); });
}

template <class T, class Label>
void cross_entropy_grad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const Rows<T, Label> r(call, call.inputs[0], 1, 3, attrs.ignore_index);
  const T smoothing = static_cast<T>(attrs.label_smoothing);
  const T all_weights = row_sum<T>(smoothing == T(0) ? 0 : r.classes, [&](std::int64_t k) { return r.weight(k); });
  const RowScale<T> scale = row_scale(r, call.inputs[2], reduction_of(attrs.reduction));
  parallel_for(r.rows, grain_for(1.5 * static_cast<double>(r.classes) + 10), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = r.offset(row);
      row_gradient(r, call.inputs[0].as<T>() + at, call.outputs[0].as<T>() + at, r.label(row), scale(row), smoothing,
                   all_weights);
    }
  });
}

// ---- negative log likelihood ----

template <class T, class Label>
void nll_loss_of(const KernelCall& call) {
  const auto& attrs = call.attributes<NllAttrs>();
  const Rows<T, Label> r(call, call.inputs[0], 1, 2, attrs.ignore_index);
  const T* scores = call.inputs[0].as<T>();
  reduce_rows(call, r, reduction_of(attrs.reduction), 5, [&](std::int64_t i) {
    const std::int64_t label = r.label(i);
    return label < 0 ? T(0) : -r.weight(label) * scores[r.offset(i) + label * r.inner];
  });
}

template <class T, class Label>
void nll_loss_grad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<NllGradAttrs>();
  const Rows<T, Label> r(call, call.outputs[0], 0, 2, attrs.ignore_index);
  const RowScale<T> scale = row_scale(r, call.inputs[1], reduction_of(attrs.reduction));
  T* out = call.outputs[0].as<T>();
  parallel_for(r.rows, grain_for(0.5 * static_cast<double>(r.classes) + 5), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* dx = out + r.offset(row);
      const std::int64_t label = r.label(row);
      for (std::int64_t i = 0; i < r.classes; ++i) dx[i * r.inner] = T(0);
      if (label >= 0) dx[label * r.inner] = -r.weight(label) * scale(row);
    }
  });
}

// Calls f(T{}, Label{}) for the types of the results and of the labels.
template <class F>
void for_types(const KernelCall& call, const View& labels, F&& f) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    if (labels.dtype == DType::i32) return f(t, std::int32_t{});
    if (labels.dtype == DType::i64) return f(t, std::int64_t{});
    unsupported(call, labels.dtype);
  });
}

}  // namespace

void cross_entropy(const KernelCall& call) {
  for_types(call, call.inputs[1], [&](auto t, auto label) { cross_entropy_of<decltype(t), decltype(label)>(call); });
}

void cross_entropy_grad(const KernelCall& call) {
  for_types(call, call.inputs[1], [&](auto t, auto label) { cross_entropy_grad_of<decltype(t), decltype(label)>(call); });
}

void nll_loss(const KernelCall& call) {
  for_types(call, call.inputs[1], [&](auto t, auto label) { nll_loss_of<decltype(t), decltype(label)>(call); });
}

void nll_loss_grad(const KernelCall& call) {
  for_types(call, call.inputs[0], [&](auto t, auto label) { nll_loss_grad_of<decltype(t), decltype(label)>(call); });
}

}  // namespace tapedeck::kernels::cpu
