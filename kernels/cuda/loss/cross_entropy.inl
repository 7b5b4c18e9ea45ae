// cross_entropy, nll_loss and their gradients, on the device: rows of class scores [n, classes, ...] against labels [n, ...].
//
// A sum or mean takes two steps: the losses of the rows, and a fold over the rows (fold.h) of losses and weights. The gradient
// of a mean begins with the fold of the weights, which it is divided by.
#pragma once

#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/fold.h>
#include <tapedeck/kernels/cuda/packed_rows.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

enum class Reduction { none, mean, sum };
inline Reduction reduction_of(Name name) {
  return name.view() == "none" ? Reduction::none : name.view() == "sum" ? Reduction::sum : Reduction::mean;
}

template <class S>
struct LabelledRows {
  Rows rows;  // of scores
  const void* labels;
  bool wide;  // i64 labels, else i32
  std::int64_t ignore_index;
  const S* weights;  // of classes; null: all 1, or in `wide_weights`
  const Compute<S>* wide_weights;
  KernelFault* fault;

  // The label of a row, or -1 if the row is ignored. A label out of range is reported, and the row is ignored.
  TAPEDECK_DEVICE std::int64_t label(std::int64_t row) const {
    const std::int64_t label =
        wide ? static_cast<const std::int64_t*>(labels)[row] : static_cast<const std::int32_t*>(labels)[row];
    if (label == ignore_index) return -1;
    if (label >= 0 && label < rows.n) return label;
    report_fault(fault, Fault::label_out_of_range, label);
    return -1;
  }
  TAPEDECK_DEVICE Compute<S> weight(std::int64_t k) const {
    return weights ? read(weights[k]) : wide_weights ? wide_weights[k] : Compute<S>(1);
  }
  TAPEDECK_DEVICE double weight_of_row(std::int64_t row) const {
    const std::int64_t k = label(row);
    return k < 0 ? 0 : static_cast<double>(weight(k));
  }
};

// Reports labels that are no integers, and returns false.
inline bool takes_labels(const KernelCall& call, const View& labels) {
  if (labels.dtype == DType::i32 || labels.dtype == DType::i64) return true;
  unsupported(call, labels.dtype);
  return false;
}

template <class S>
LabelledRows<S> labelled_rows(const KernelCall& call, const View& scores, int labels, int weights, std::int64_t ignored) {
  const View& l = call.inputs[labels];
  const View* const w = weights < call.n_inputs ? &call.inputs[weights] : nullptr;
  const bool wide = w && w->dtype != scores.dtype;
  return {Rows(scores, 1),
          l.data,
          l.dtype == DType::i64,
          ignored,
          w && !wide ? w->as<const S>() : nullptr,
          wide ? w->as<const Compute<S>>() : nullptr,
          call.fault};
}

// ---- the workspace: one number of 8 bytes for each row, or two numbers for a gradient, and then the pieces of a fold ----

inline std::int64_t round_up(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }
inline std::int64_t loss_bytes(const View& scores) {
  const std::int64_t rows = Rows(scores, 1).rows;
  return round_up(8 * rows) + Pieces(1, rows).bytes(sizeof(Two<double>));
}
inline std::int64_t gradient_bytes(const View& scores) {
  const Rows r(scores, 1);
  const std::int64_t labels = Pieces(1, r.rows).bytes(sizeof(double)), classes = Pieces(1, r.n).bytes(sizeof(double));
  return 16 + (labels > classes ? labels : classes);
}

// ---- sums over rows ----

// Losses of the type of the scores, or of the type in which they are computed.
template <class S>
struct LossNumbers {
  S* narrow;         // null: `wide`
  Compute<S>* wide;  // null: `narrow`

  TAPEDECK_DEVICE void set(std::int64_t i, Compute<S> loss) const {
    if (narrow)
      narrow[i] = written<S>(loss);
    else
      wide[i] = loss;
  }
};

template <class S>
LossNumbers<S> loss_numbers(const KernelCall& call) {
  const View& out = call.outputs[0];
  if (out.dtype == call.inputs[0].dtype) return {out.as<S>(), nullptr};
  return {nullptr, out.as<Compute<S>>()};
}

// The sum or the mean of the losses of the rows.
template <class S>
struct LossTask {
  using A = Two<double>;  // the losses, and the weights if the result is a mean
  LabelledRows<S> r;
  const Compute<S>* losses;
  LossNumbers<S> out;
  bool mean;

  TAPEDECK_DEVICE A identity() const { return {0, 0}; }
  TAPEDECK_DEVICE A combine(const A& a, const A& b) const { return {a.a + b.a, a.b + b.b}; }
  TAPEDECK_DEVICE int place(std::int64_t) const { return 0; }
  TAPEDECK_DEVICE A at(int, std::int64_t row) const {
    return {static_cast<double>(losses[row]), mean ? r.weight_of_row(row) : 0};
  }
  TAPEDECK_DEVICE void finish(std::int64_t, const A& total) const {
    out.set(0, static_cast<Compute<S>>(mean ? total.a / total.b : total.a));
  }
};

// The sum of the weights of all classes, or of the labels of all rows.
template <class S>
struct WeightTask {
  using A = double;
  LabelledRows<S> r;
  Compute<S>* out;
  bool of_classes;

  TAPEDECK_DEVICE A identity() const { return 0; }
  TAPEDECK_DEVICE A combine(A a, A b) const { return a + b; }
  TAPEDECK_DEVICE int place(std::int64_t) const { return 0; }
  TAPEDECK_DEVICE A at(int, std::int64_t i) const { return of_classes ? static_cast<double>(r.weight(i)) : r.weight_of_row(i); }
  TAPEDECK_DEVICE void finish(std::int64_t, A total) const { *out = static_cast<Compute<S>>(total); }
};

// The losses of the rows go to the result, or in order to the workspace.
template <class S>
LossNumbers<S> losses_of(const KernelCall& call, Reduction reduction) {
  if (reduction == Reduction::none) return loss_numbers<S>(call);
  return {nullptr, static_cast<Compute<S>*>(call.workspace)};
}

template <class S>
void fold_losses(const KernelCall& call, const LabelledRows<S>& r, Reduction reduction) {
  if (reduction == Reduction::none) return;
  const LossTask<S> task{r, static_cast<const Compute<S>*>(call.workspace), loss_numbers<S>(call),
                         reduction == Reduction::mean};
  fold_lengthwise(call, task, Pieces(1, r.rows.rows), static_cast<char*>(call.workspace) + round_up(8 * r.rows.rows));
}

// The factor of a row's gradient: the gradient of its loss, divided by the divisor of a mean.
template <class S>
struct RowScale {
  const S* dloss;  // null: `wide_dloss`
  const Compute<S>* wide_dloss;
  const Compute<S>* divisor;  // null: 1
  bool per_row;

  TAPEDECK_DEVICE Compute<S> of(std::int64_t row) const {
    const std::int64_t at = per_row ? row : 0;
    const Compute<S> d = dloss ? read(dloss[at]) : wide_dloss[at];
    return divisor ? d / *divisor : d;
  }
};

// Starts the fold of the divisor, if there is one.
template <class S>
RowScale<S> row_scale(const KernelCall& call, const LabelledRows<S>& r, const View& dloss, Reduction reduction) {
  const bool wide = dloss.dtype != call.outputs[0].dtype;
  RowScale<S> scale{wide ? nullptr : dloss.as<const S>(), wide ? dloss.as<const Compute<S>>() : nullptr, nullptr,
                    reduction == Reduction::none};
  if (reduction != Reduction::mean) return scale;
  auto* const divisor = static_cast<Compute<S>*>(call.workspace);
  fold_lengthwise(call, WeightTask<S>{r, divisor, false}, Pieces(1, r.rows.rows), static_cast<char*>(call.workspace) + 16);
  scale.divisor = divisor;
  return scale;
}

// ---- cross entropy ----

template <class S>
struct CrossEntropyArgs {
  LabelledRows<S> r;
  const S* x;
  LossNumbers<S> losses;
  Compute<S> smoothing;
};

// log(sum(exp(x))) as two numbers, top + log(total): their sum would round away the digits of the logarithm.
template <class S, class Team>
TAPEDECK_DEVICE Two<Compute<S>> top_and_total(const S* x, std::int64_t n, std::int64_t inner) {
  using C = Compute<S>;
  C top = -std::numeric_limits<C>::infinity(), total = 0;
  for (std::int64_t k = Team::rank(); k < n; k += Team::kSize) top = Maximum{}(top, read(x[k * inner]));
  top = Team::max(top);
  for (std::int64_t k = Team::rank(); k < n; k += Team::kSize) total += exp_of(read(x[k * inner]) - top);
  return {top, Team::sum(total)};
}

// -(1 - s) w[label] log p[label] - s / classes * sum of w log p, where s is the smoothing and p = softmax(x).
template <class S, class Team>
TAPEDECK_KERNEL void cross_entropy_rows(const CrossEntropyArgs<S> a) {
  using C = Compute<S>;
  const Rows& rows = a.r.rows;
  for (std::int64_t row = first_row<Team>(); row < rows.rows; row += row_step<Team>()) {
    const S* x = a.x + rows.offset(row);
    const Two<C> norm = top_and_total<S, Team>(x, rows.n, rows.inner);
    const C rest = log_of(norm.b);
    C soft = 0;
    if (a.smoothing != C(0)) {
      for (std::int64_t k = Team::rank(); k < rows.n; k += Team::kSize)
        soft += a.r.weight(k) * -((read(x[k * rows.inner]) - norm.a) - rest);
      soft = Team::sum(soft);
    }
    if (Team::rank() != 0) continue;
    const std::int64_t label = a.r.label(row);
    if (label < 0) {
      a.losses.set(row, C(0));
      continue;
    }
    const C hard = a.r.weight(label) * -((read(x[label * rows.inner]) - norm.a) - rest);
    a.losses.set(row, a.smoothing == C(0) ? hard : (C(1) - a.smoothing) * hard + a.smoothing / static_cast<C>(rows.n) * soft);
  }
}

template <class S>
struct CrossEntropyGradArgs {
  LabelledRows<S> r;
  const S* x;
  S* dx;
  RowScale<S> scale;
  Compute<S> smoothing;
  const Compute<S>* all_weights;  // the sum of the weights of all classes; null: their number
};

// dx = scale (total p - (1 - s) w[label] one_hot(label) - s / classes * w), where p = softmax(x) and `total` is the sum of the
// weights in the smoothed target. Rows that are ignored have gradient 0.
template <class S, class Team>
TAPEDECK_KERNEL void cross_entropy_grad_rows(const CrossEntropyGradArgs<S> a) {
  using C = Compute<S>;
  const Rows& rows = a.r.rows;
  const C each = a.smoothing / static_cast<C>(rows.n);
  const C smooth_total = a.smoothing == C(0) ? C(0) : each * (a.all_weights ? *a.all_weights : static_cast<C>(rows.n));
  for (std::int64_t row = first_row<Team>(); row < rows.rows; row += row_step<Team>()) {
    const std::int64_t at = rows.offset(row), label = a.r.label(row);
    const Two<C> norm = top_and_total<S, Team>(a.x + at, rows.n, rows.inner);
    const C hard = label < 0 ? C(0) : (C(1) - a.smoothing) * a.r.weight(label), total = hard + smooth_total;
    const C scale = label < 0 ? C(0) : a.scale.of(row), factor = total / norm.b * scale;
    for (std::int64_t k = Team::rank(); k < rows.n; k += Team::kSize) {
      const std::int64_t here = at + k * rows.inner;
      const C e = exp_of(read(a.x[here]) - norm.a);
      C d = e * factor;
      if (a.smoothing != C(0)) d -= each * scale * a.r.weight(k);
      if (k == label) d = (e / norm.b * total - each * a.r.weight(k) - hard) * scale;
      a.dx[here] = written<S>(label < 0 ? C(0) : d);
    }
  }
}

// Rows in f32 whose elements are neighbours are read once, without smoothing.
template <class S, class Team>
TAPEDECK_WIDE_KERNEL void cross_entropy_packed(const CrossEntropyArgs<S> a) {
  const Rows& rows = a.r.rows;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Team::teams();
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Team::teams() + Team::index(); row < rows.rows; row += step) {
    const S* const x = a.x + row * rows.n;
    const Two<float> sum = exp_sum_of<Team>(KeptRow<S>{x, nullptr}, RowPacks::of(x, rows.n));
    if (Team::rank() != 0) continue;
    const std::int64_t label = a.r.label(row);
    a.losses.set(row, label < 0 ? 0.0f : a.r.weight(label) * -((read(x[label]) - sum.a) - log_of(sum.b)));
  }
}

struct RowKeeping {
  bool keeps;
  std::int64_t stride;
};
template <class S>
struct PackedGradArgs {
  CrossEntropyGradArgs<S> a;
  RowKeeping keeping;
};

template <class S, class Team>
TAPEDECK_WIDE_KERNEL void cross_entropy_grad_packed(const PackedGradArgs<S> args) {
  const CrossEntropyGradArgs<S>& a = args.a;
  const Rows& rows = a.r.rows;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Team::teams();
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Team::teams() + Team::index(); row < rows.rows; row += step) {
    const S* const from = a.x + row * rows.n;
    const std::int64_t label = a.r.label(row);
    const auto x = KeptRow<S>::template of<Team>(from, args.keeping.keeps, args.keeping.stride, 0, 1);
    const RowPacks p = RowPacks::of(from, rows.n);
    const Two<float> sum = exp_sum_of<Team>(x, p);
    const float total = label < 0 ? 0.0f : a.r.weight(label), scale = label < 0 ? 0.0f : a.scale.of(row);
    const float factor = total / sum.b * scale;
    write_row<Team>(x, p, a.dx + row * rows.n, [&](float v, std::int64_t k) {
      const float e = exp_for<S>(v - sum.a), d = k == label ? (e / sum.b * total - total) * scale : e * factor;
      return label < 0 ? 0.0f : d;
    });
    Team::sync();  // the next row lies otherwise in the shared memory
  }
}

template <class S>
void cross_entropy_by_packs(const KernelCall& call, const CrossEntropyArgs<S>& a) {
  RowLaunch l = row_launch(a.r.rows.rows, a.r.rows.n, sizeof(S), 0);
  launch(call, l.warps ? &cross_entropy_packed<S, OneWarp> : &cross_entropy_packed<S, WholeBlock>, l.size, a);
}
template <class S>
void cross_entropy_grad_by_packs(const KernelCall& call, const CrossEntropyGradArgs<S>& a) {
  const RowLaunch l = row_launch(a.r.rows.rows, a.r.rows.n, sizeof(S), 1);
  const PackedGradArgs<S> args{a, {l.keeps, l.stride}};
  launch(call, l.warps ? &cross_entropy_grad_packed<S, OneWarp> : &cross_entropy_grad_packed<S, WholeBlock>, l.size, args);
}

template <class S>
void cross_entropy_each_row(const KernelCall& call, const CrossEntropyArgs<S>& a) {
  if constexpr (std::is_same_v<Compute<S>, float>)
    if (a.smoothing == 0 && packed_rows<S>(a.r.rows, a.x, a.x)) return cross_entropy_by_packs(call, a);
  with_team(a.r.rows, [&](auto team) {
    using Team = decltype(team);
    launch(call, &cross_entropy_rows<S, Team>, for_rows<Team>(a.r.rows.rows), a);
  });
}
template <class S>
void cross_entropy_grad_each_row(const KernelCall& call, const CrossEntropyGradArgs<S>& a) {
  if constexpr (std::is_same_v<Compute<S>, float>)
    if (a.smoothing == 0 && packed_rows<S>(a.r.rows, a.x, a.dx)) return cross_entropy_grad_by_packs(call, a);
  with_team(a.r.rows, [&](auto team) {
    using Team = decltype(team);
    launch(call, &cross_entropy_grad_rows<S, Team>, for_rows<Team>(a.r.rows.rows), a);
  });
}

template <class S>
void cross_entropy_of(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const Reduction reduction = reduction_of(attrs.reduction);
  const auto r = labelled_rows<S>(call, call.inputs[0], 1, 2, attrs.ignore_index);
  const CrossEntropyArgs<S> a{r, call.inputs[0].as<const S>(), losses_of<S>(call, reduction),
                              static_cast<Compute<S>>(attrs.label_smoothing)};
  cross_entropy_each_row(call, a);
  fold_losses(call, r, reduction);
}

template <class S>
void cross_entropy_grad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const auto r = labelled_rows<S>(call, call.inputs[0], 1, 3, attrs.ignore_index);
  CrossEntropyGradArgs<S> a{
      r, call.inputs[0].as<const S>(), call.outputs[0].as<S>(), {}, static_cast<Compute<S>>(attrs.label_smoothing), nullptr};
  a.scale = row_scale(call, r, call.inputs[2], reduction_of(attrs.reduction));
  if (a.smoothing != 0 && (r.weights || r.wide_weights)) {
    auto* const total = static_cast<Compute<S>*>(call.workspace) + 1;
    fold_lengthwise(call, WeightTask<S>{r, total, true}, Pieces(1, r.rows.n), static_cast<char*>(call.workspace) + 16);
    a.all_weights = total;
  }
  cross_entropy_grad_each_row(call, a);
}

// ---- negative log likelihood ----

template <class S>
struct NllArgs {
  LabelledRows<S> r;
  const S* x;
  LossNumbers<S> losses;
};

template <class S>
TAPEDECK_KERNEL void nll_rows(const NllArgs<S> a) {
  for (std::int64_t row = thread_index(); row < a.r.rows.rows; row += thread_count()) {
    const std::int64_t label = a.r.label(row);
    a.losses.set(row,
                 label < 0 ? Compute<S>(0) : -a.r.weight(label) * read(a.x[a.r.rows.offset(row) + label * a.r.rows.inner]));
  }
}

template <class S>
struct NllGradArgs {
  LabelledRows<S> r;
  S* dx;
  RowScale<S> scale;
};

// A thread writes one element; neighbouring threads write neighbours.
template <class S>
TAPEDECK_KERNEL void nll_grad_elements(const NllGradArgs<S> a) {
  const Rows& rows = a.r.rows;
  for (std::int64_t i = thread_index(); i < rows.rows * rows.n; i += thread_count()) {
    const std::int64_t line = i / rows.inner, row = line / rows.n * rows.inner + i % rows.inner, label = a.r.label(row);
    a.dx[i] = written<S>(line % rows.n == label ? -a.r.weight(label) * a.scale.of(row) : Compute<S>(0));
  }
}

template <class S>
void nll_loss_of(const KernelCall& call) {
  const auto& attrs = call.attributes<NllAttrs>();
  const Reduction reduction = reduction_of(attrs.reduction);
  const auto r = labelled_rows<S>(call, call.inputs[0], 1, 2, attrs.ignore_index);
  const NllArgs<S> a{r, call.inputs[0].as<const S>(), losses_of<S>(call, reduction)};
  launch(call, &nll_rows<S>, for_items(r.rows.rows), a);
  fold_losses(call, r, reduction);
}

template <class S>
void nll_loss_grad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<NllGradAttrs>();
  const auto r = labelled_rows<S>(call, call.outputs[0], 0, 2, attrs.ignore_index);
  const NllGradArgs<S> a{r, call.outputs[0].as<S>(), row_scale(call, r, call.inputs[1], reduction_of(attrs.reduction))};
  launch(call, &nll_grad_elements<S>, for_items(r.rows.rows * r.rows.n), a);
}

}  // namespace folds

std::int64_t cross_entropy_workspace(const KernelCall& call) {
  const bool none = folds::reduction_of(call.attributes<CrossEntropyAttrs>().reduction) == folds::Reduction::none;
  return none ? 0 : folds::loss_bytes(call.inputs[0]);
}
std::int64_t nll_loss_workspace(const KernelCall& call) {
  const bool none = folds::reduction_of(call.attributes<NllAttrs>().reduction) == folds::Reduction::none;
  return none ? 0 : folds::loss_bytes(call.inputs[0]);
}
std::int64_t cross_entropy_grad_workspace(const KernelCall& call) { return folds::gradient_bytes(call.inputs[0]); }
std::int64_t nll_loss_grad_workspace(const KernelCall& call) { return folds::gradient_bytes(call.outputs[0]); }

void cross_entropy(const KernelCall& call) {
  if (!folds::takes_labels(call, call.inputs[1])) return;
  for_floats(call, call.inputs[0].dtype, [&](auto t) { folds::cross_entropy_of<decltype(t)>(call); });
}
void cross_entropy_grad(const KernelCall& call) {
  if (!folds::takes_labels(call, call.inputs[1])) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { folds::cross_entropy_grad_of<decltype(t)>(call); });
}
void nll_loss(const KernelCall& call) {
  if (!folds::takes_labels(call, call.inputs[1])) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { folds::nll_loss_of<decltype(t)>(call); });
}
void nll_loss_grad(const KernelCall& call) {
  if (!folds::takes_labels(call, call.inputs[0])) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { folds::nll_loss_grad_of<decltype(t)>(call); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
