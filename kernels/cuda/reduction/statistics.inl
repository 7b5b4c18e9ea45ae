// any, all, count_nonzero, var, std, logsumexp and norm over any set of axes of views of any strides, on the device. Each is
// one fold; the comments of the ops say where that differs from the two folds of the CPU kernel.
#pragma once

#include <tapedeck/kernels/attrs/statistics.h>
#include <tapedeck/kernels/cuda/reduction/view_fold.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

enum class Truth { any, all, count };

// Counts the elements that are not zero. An element is read as bits; of the floats the sign bit is dropped, so that -0 is zero.
template <class Bits>
struct TruthOp {
  using In = Bits;
  using A = std::uint64_t;
  using Out = Integer;  // a bool, or i64 for the count
  static constexpr bool kPacks = false;
  static constexpr bool kShifts = false;
  Truth truth;
  int dropped;  // bits

  TAPEDECK_DEVICE A identity() const { return 0; }
  TAPEDECK_DEVICE A at(Bits x, Bits, std::int64_t) const { return static_cast<Bits>(x << dropped) != 0; }
  TAPEDECK_DEVICE A combine(A a, A b) const { return a + b; }
  TAPEDECK_DEVICE std::int64_t finish(A total, Bits, std::int64_t length) const {
    if (truth == Truth::count) return static_cast<std::int64_t>(total);
    return truth == Truth::any ? total != 0 : total == static_cast<A>(length);
  }
};

inline void fold_truth(const KernelCall& call, Truth truth) {
  const DType dtype = call.inputs[0].dtype;
  const int dropped = is_floating(dtype) ? 1 : 0;
  for_element_widths(dtype, [&](auto bits) {
    fold_view(call, call.attributes<ReduceAttrs>().axes, TruthOp<decltype(bits)>{truth, dropped});
  });
}

// The variance from sums of d and d^2 in f64, where d is the distance from the first element. The cancellation is harmless: the
// square of that distance from the mean is at most n times the variance.
template <class T>
struct VarianceOp {
  using In = T;
  using A = Two<double>;
  using Out = T;
  static constexpr bool kPacks = false;
  static constexpr bool kShifts = true;
  double correction;
  bool root;

  TAPEDECK_DEVICE A identity() const { return {0, 0}; }
  TAPEDECK_DEVICE A at(T x, T first, std::int64_t) const {
    const double d = static_cast<double>(x) - static_cast<double>(first);
    return {d, d * d};
  }
  TAPEDECK_DEVICE A combine(const A& a, const A& b) const { return {a.a + b.a, a.b + b.b}; }
  TAPEDECK_DEVICE T finish(const A& total, T, std::int64_t length) const {
    const double n = static_cast<double>(length), squares = total.b - total.a * total.a / n;
    const double divisor = n - correction > 0 ? n - correction : 0;
    const double variance = (squares < 0 ? 0 : squares) / divisor;
    return static_cast<T>(root ? std::sqrt(variance) : variance);
  }
};

// log(sum(exp(x))) as its largest x and the sum of e^(x - largest).
template <class T>
TAPEDECK_DEVICE_CALL Two<T> merge_exp_sums(Two<T> a, Two<T> b) {
  if (a.a == b.a) return {a.a, a.b + b.b};
  if (a.a > b.a) return {a.a, a.b + b.b * exp_of(b.a - a.a)};
  if (b.a > a.a) return {b.a, b.b + a.b * exp_of(a.a - b.a)};
  return {a.a + b.a, a.b + b.b};  // NaN
}

template <class T>
struct LogSumExpOp {
  using In = T;
  using A = Two<T>;
  using Out = T;
  static constexpr bool kPacks = false;
  static constexpr bool kShifts = false;

  TAPEDECK_DEVICE A identity() const { return {-std::numeric_limits<T>::infinity(), T(0)}; }
  TAPEDECK_DEVICE A at(T x, T, std::int64_t) const { return {x, T(1)}; }
  TAPEDECK_DEVICE A combine(const A& a, const A& b) const { return merge_exp_sums(a, b); }
  TAPEDECK_DEVICE T finish(const A& total, T, std::int64_t) const { return total.a + log_of(total.b); }
};

enum class NormKind { squares, sizes, largest, smallest, count, powers };
inline NormKind norm_kind(double p) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (p == 2) return NormKind::squares;
  if (p == 1) return NormKind::sizes;
  if (p == infinity) return NormKind::largest;
  if (p == -infinity) return NormKind::smallest;
  return p == 0 ? NormKind::count : NormKind::powers;
}

TAPEDECK_DEVICE_CALL double power(double x, double p) { return std::pow(x, p); }

// The p-norm, in f64 for every p.
template <class T>
struct NormOp {
  using In = T;
  using A = double;
  using Out = T;
  static constexpr bool kPacks = false;
  static constexpr bool kShifts = false;
  NormKind kind;
  double p;

  TAPEDECK_DEVICE A identity() const {
    const double infinity = std::numeric_limits<double>::infinity();
    return kind == NormKind::largest ? -infinity : kind == NormKind::smallest ? infinity : 0;
  }
  TAPEDECK_DEVICE A at(T x, T, std::int64_t) const {
    const double size = std::fabs(static_cast<double>(x));
    if (kind == NormKind::squares) return size * size;
    if (kind == NormKind::count) return size != 0 ? 1 : 0;
    return kind == NormKind::powers ? power(size, p) : size;
  }
  TAPEDECK_DEVICE A combine(A a, A b) const {
    if (kind == NormKind::largest) return Maximum{}(a, b);
    return kind == NormKind::smallest ? Minimum{}(a, b) : a + b;
  }
  TAPEDECK_DEVICE T finish(A total, T, std::int64_t) const {
    if (kind == NormKind::squares) return static_cast<T>(std::sqrt(total));
    return static_cast<T>(kind == NormKind::powers ? power(total, 1 / p) : total);
  }
};

inline void variance(const KernelCall& call, bool root) {
  const auto& a = call.attributes<VarAttrs>();
  for_wide_floats(call, call.inputs[0].dtype, [&](auto t) {
    fold_view(call, a.axes, VarianceOp<decltype(t)>{a.correction, root});
  });
}

}  // namespace folds

// The functions of this file whose names are those of ops are declared last: one of them is called std.
#define TAPEDECK_WORKSPACE(op, attributes_of, accumulator)                                  \
  std::int64_t op##_workspace(const KernelCall& call) {                                     \
    return folds::view_workspace(call, call.attributes<attributes_of>().axes, accumulator); \
  }
TAPEDECK_WORKSPACE(any, ReduceAttrs, 8)
TAPEDECK_WORKSPACE(all, ReduceAttrs, 8)
TAPEDECK_WORKSPACE(count_nonzero, ReduceAttrs, 8)
TAPEDECK_WORKSPACE(var, VarAttrs, 16)
TAPEDECK_WORKSPACE(std, VarAttrs, 16)
TAPEDECK_WORKSPACE(logsumexp, ReduceAttrs, 16)
TAPEDECK_WORKSPACE(norm, NormAttrs, 8)
#undef TAPEDECK_WORKSPACE

void any(const KernelCall& call) { folds::fold_truth(call, folds::Truth::any); }
void all(const KernelCall& call) { folds::fold_truth(call, folds::Truth::all); }
void count_nonzero(const KernelCall& call) { folds::fold_truth(call, folds::Truth::count); }

void var(const KernelCall& call) { folds::variance(call, false); }
void std(const KernelCall& call) { folds::variance(call, true); }

void logsumexp(const KernelCall& call) {
  for_wide_floats(call, call.inputs[0].dtype, [&](auto t) {
    folds::fold_view(call, call.attributes<ReduceAttrs>().axes, folds::LogSumExpOp<decltype(t)>{});
  });
}

void norm(const KernelCall& call) {
  const auto& a = call.attributes<NormAttrs>();
  for_wide_floats(call, call.inputs[0].dtype, [&](auto t) {
    folds::fold_view(call, a.axes, folds::NormOp<decltype(t)>{folds::norm_kind(a.p), a.p});
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
