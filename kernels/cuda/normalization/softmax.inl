// softmax and log_softmax along one axis, and their gradients, which read the result, on the device. Views are dense.
#pragma once

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cuda/reduce.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

template <class S>
struct SoftmaxArgs {
  Rows rows;
  const S* x;
  const S* dy;  // of the gradients; x is then the result of the op
  S* out;
  bool logarithm;
};

template <class S, class Team>
TAPEDECK_KERNEL void softmax_rows(const SoftmaxArgs<S> a) {
  using C = Compute<S>;
  const std::int64_t inner = a.rows.inner;
  for (std::int64_t row = first_row<Team>(); row < a.rows.rows; row += row_step<Team>()) {
    const std::int64_t at = a.rows.offset(row);
    C top = -std::numeric_limits<C>::infinity(), total = 0;
    for (std::int64_t i = Team::rank(); i < a.rows.n; i += Team::kSize) top = Maximum{}(top, read(a.x[at + i * inner]));
    top = Team::max(top);
    for (std::int64_t i = Team::rank(); i < a.rows.n; i += Team::kSize) total += exp_of(read(a.x[at + i * inner]) - top);
    total = Team::sum(total);
    const C factor = a.logarithm ? log_of(total) : C(1) / total;
    for (std::int64_t i = Team::rank(); i < a.rows.n; i += Team::kSize) {
      const C x = read(a.x[at + i * inner]) - top;
      a.out[at + i * inner] = written<S>(a.logarithm ? x - factor : exp_of(x) * factor);
    }
  }
}

// softmax: dx = y (dy - sum(y dy));  log_softmax: dx = dy - exp(y) sum(dy)
template <class S, class Team>
TAPEDECK_KERNEL void softmax_grad_rows(const SoftmaxArgs<S> a) {
  using C = Compute<S>;
  const std::int64_t inner = a.rows.inner;
  for (std::int64_t row = first_row<Team>(); row < a.rows.rows; row += row_step<Team>()) {
    const std::int64_t first = a.rows.offset(row);
    C total = 0;
    for (std::int64_t i = Team::rank(); i < a.rows.n; i += Team::kSize) {
      const std::int64_t at = first + i * inner;
      total += a.logarithm ? read(a.dy[at]) : read(a.x[at]) * read(a.dy[at]);
    }
    total = Team::sum(total);
    for (std::int64_t i = Team::rank(); i < a.rows.n; i += Team::kSize) {
      const std::int64_t at = first + i * inner;
      const C y = read(a.x[at]), dy = read(a.dy[at]);
      a.out[at] = written<S>(a.logarithm ? dy - exp_of(y) * total : y * (dy - total));
    }
  }
}

inline void softmax_forward(const KernelCall& call, bool logarithm) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using S = decltype(t);
    const Rows rows(call.outputs[0], static_cast<int>(call.attributes<AxisAttrs>().axis));
    if (rows.rows == 0 || rows.n == 0) return;
    const SoftmaxArgs<S> args{rows, call.inputs[0].as<const S>(), nullptr, call.outputs[0].as<S>(), logarithm};
    with_team(rows, [&](auto team) {
      using Team = decltype(team);
      launch(call, &softmax_rows<S, Team>, for_rows<Team>(rows.rows), args);
    });
  });
}

inline void softmax_backward(const KernelCall& call, bool logarithm) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using S = decltype(t);
    const Rows rows(call.outputs[0], static_cast<int>(call.attributes<AxisAttrs>().axis));
    if (rows.rows == 0 || rows.n == 0) return;
    const SoftmaxArgs<S> args{rows, call.inputs[0].as<const S>(), call.inputs[1].as<const S>(), call.outputs[0].as<S>(),
                              logarithm};
    with_team(rows, [&](auto team) {
      using Team = decltype(team);
      launch(call, &softmax_grad_rows<S, Team>, for_rows<Team>(rows.rows), args);
    });
  });
}

}  // namespace folds

void softmax(const KernelCall& call) { folds::softmax_forward(call, false); }
void log_softmax(const KernelCall& call) { folds::softmax_forward(call, true); }
void softmax_grad(const KernelCall& call) { folds::softmax_backward(call, false); }
void log_softmax_grad(const KernelCall& call) { folds::softmax_backward(call, true); }

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
