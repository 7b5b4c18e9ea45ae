// cross_entropy and nll_loss, and their gradients: losses of rows of class scores [n, classes, ...] against labels [n, ...].
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loss/class_rows.h>
#include <tapedeck/kernels/cpu/loss/cross_entropy_half.h>
#include <tapedeck/kernels/half.h>

#include <algorithm>
#include <array>

namespace tapedeck::kernels::cpu {
namespace {

// ---- cross entropy ----

template <class T, class Label>
void cross_entropy_of(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const ClassRows<T, Label> r(call, call.inputs[0], 1, 2, attrs.ignore_index);
  const T* scores = call.inputs[0].as<T>();
  const T smoothing = static_cast<T>(attrs.label_smoothing);
  reduce_rows(call, r, reduction_of(attrs.reduction), r.grain(1.0, 10), [&](std::int64_t begin, std::int64_t end, T* out) {
    r.for_lines(begin, end, [&](std::int64_t row, const Lines& lines) {
      const std::array<const T*, 1> in = {scores};
      with_long_loops(lines, in, static_cast<T*>(nullptr),
                      [&](const Lines& s, const auto& x, T*) { line_losses(r, x[0], row, s, smoothing, out + (row - begin)); });
    });
  });
}

template <class T, class Label>
void cross_entropy_grad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<CrossEntropyAttrs>();
  const ClassRows<T, Label> r(call, call.inputs[0], 1, 3, attrs.ignore_index);
  const T smoothing = static_cast<T>(attrs.label_smoothing);
  const T all_weights = row_sum<T>(smoothing == T(0) ? 0 : r.classes, [&](std::int64_t k) { return r.weight(k); });
  const RowScale<T> scale = row_scale(r, call.inputs[2], reduction_of(attrs.reduction));
  const T* x = call.inputs[0].as<T>();
  T* dx = call.outputs[0].as<T>();
  parallel_for(r.rows, r.grain(1.0, 10), [&](std::int64_t begin, std::int64_t end) {
    r.for_lines(begin, end, [&](std::int64_t row, const Lines& lines) {
      const std::array<const T*, 1> in = {x};
      with_long_loops(lines, in, dx, [&](const Lines& s, const auto& from, T* to) {
        line_gradients(r, from[0], to, row, s, scale, smoothing, all_weights);
      });
    });
  });
}

// ---- negative log likelihood ----

template <class T, class Label>
void nll_loss_of(const KernelCall& call) {
  const auto& attrs = call.attributes<NllAttrs>();
  const ClassRows<T, Label> r(call, call.inputs[0], 1, 2, attrs.ignore_index);
  const T* scores = call.inputs[0].as<T>();
  reduce_rows(call, r, reduction_of(attrs.reduction), grain_for(5), [&](std::int64_t begin, std::int64_t end, T* out) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t label = r.label(i);
      *out++ = label < 0 ? T(0) : -r.weight(label) * scores[r.offset(i) + label * r.inner];
    }
  });
}

template <class T, class Label>
void nll_loss_grad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<NllGradAttrs>();
  const ClassRows<T, Label> r(call, call.outputs[0], 0, 2, attrs.ignore_index);
  const RowScale<T> scale = row_scale(r, call.inputs[1], reduction_of(attrs.reduction));
  T* out = call.outputs[0].as<T>();
  parallel_for(r.rows, r.grain(0.2, 5), [&](std::int64_t begin, std::int64_t end) {
    r.for_lines(begin, end, [&](std::int64_t row, const Lines& s) {
      const auto none = [](std::int64_t) { return T(0); };
      for_elements(s, none, [out](std::int64_t at, std::int64_t, T zero) { out[at] = zero; });
      for (std::int64_t j = 0; j < s.width; ++j) {
        const std::int64_t label = r.label(row + j);
        if (label >= 0) out[s.at + label * s.stride + j * s.step] = -r.weight(label) * scale(row + j);
      }
    });
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
  if (is_half(call.inputs[0].dtype)) return cross_entropy_half(call);
  for_types(call, call.inputs[1], [&](auto t, auto label) { cross_entropy_of<decltype(t), decltype(label)>(call); });
}

void cross_entropy_grad(const KernelCall& call) {
  if (is_half(call.inputs[0].dtype)) return cross_entropy_grad_half(call);
  for_types(call, call.inputs[1], [&](auto t, auto label) { cross_entropy_grad_of<decltype(t), decltype(label)>(call); });
}

void nll_loss(const KernelCall& call) {
  for_types(call, call.inputs[1], [&](auto t, auto label) { nll_loss_of<decltype(t), decltype(label)>(call); });
}

void nll_loss_grad(const KernelCall& call) {
  for_types(call, call.inputs[0], [&](auto t, auto label) { nll_loss_grad_of<decltype(t), decltype(label)>(call); });
}

}  // namespace tapedeck::kernels::cpu
