// softmax and log_softmax along one axis, and their gradients, which read the result, on the device. Views are dense.
#pragma once

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cuda/packed_rows.h>

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
  bool keeps = false;  // of packed rows: in shared memory, `stride` bytes each
  std::int64_t stride = 0;
};

// Rows in f32 whose elements are neighbours are read once.
template <class S, class Team>
TAPEDECK_WIDE_KERNEL void softmax_packed(const SoftmaxArgs<S> a) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Team::teams();
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Team::teams() + Team::index(); row < a.rows.rows;
       row += step) {
    const S* const from = a.x + row * a.rows.n;
    const auto x = KeptRow<S>::template of<Team>(from, a.keeps, a.stride, 0, 1);
    const RowPacks p = RowPacks::of(from, a.rows.n);
    const Two<float> sum = exp_sum_of<Team>(x, p);
    if (a.logarithm) {
      const float rest = log_of(sum.b);
      write_row<Team>(x, p, a.out + row * a.rows.n, [&](float v, std::int64_t) { return (v - sum.a) - rest; });
    } else {
      const float factor = 1 / sum.b;
      write_row<Team>(x, p, a.out + row * a.rows.n, [&](float v, std::int64_t) { return exp_for<S>(v - sum.a) * factor; });
    }
    Team::sync();  // the next row lies otherwise in the shared memory
  }
}

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

template <class S>
void softmax_by_packs(const KernelCall& call, SoftmaxArgs<S> a) {
  const RowLaunch l = row_launch(a.rows.rows, a.rows.n, sizeof(S), 1);
  a.keeps = l.keeps;
  a.stride = l.stride;
  launch(call, l.warps ? &softmax_packed<S, OneWarp> : &softmax_packed<S, WholeBlock>, l.size, a);
}

inline void softmax_forward(const KernelCall& call, bool logarithm) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using S = decltype(t);
    const Rows rows(call.outputs[0], static_cast<int>(call.attributes<AxisAttrs>().axis));
    if (rows.rows == 0 || rows.n == 0) return;
    const SoftmaxArgs<S> args{rows, call.inputs[0].as<const S>(), nullptr, call.outputs[0].as<S>(), logarithm};
    if constexpr (std::is_same_v<Compute<S>, float>)
      if (packed_rows<S>(rows, args.x, args.out)) return softmax_by_packs(call, args);
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
