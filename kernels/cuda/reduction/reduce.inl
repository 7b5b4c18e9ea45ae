// sum, mean, max, min and prod over any set of axes of views of any strides, on the device.
#pragma once

#include <tapedeck/kernels/cuda/reduction/view_fold.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

// Integers are added and multiplied unsigned, so that they wrap around; the result is the last bits.
template <class S>
using Summed = Wrap<Compute<S>>;

// The sum, or the mean: a sum divided by the count.
template <class S>
struct SumOp {
  using In = S;
  using A = Summed<S>;
  using Out = S;
  static constexpr bool kPacks = std::is_same_v<Compute<S>, float>;
  static constexpr bool kShifts = false;
  bool mean;

  TAPEDECK_DEVICE A identity() const { return A(0); }
  TAPEDECK_DEVICE A at(const Value<S>& x, const Value<S>&, std::int64_t) const { return static_cast<A>(read(x)); }
  TAPEDECK_DEVICE A combine(A a, A b) const { return a + b; }
  TAPEDECK_DEVICE Value<S> finish(A total, const Value<S>&, std::int64_t length) const {
    if constexpr (std::is_floating_point_v<A>)
      if (mean) total = total / static_cast<A>(length);
    return written<Value<S>>(static_cast<Compute<S>>(total));
  }
};

template <class S>
struct ProductOp {
  using In = S;
  using A = Summed<S>;
  using Out = S;
  static constexpr bool kPacks = false;
  static constexpr bool kShifts = false;

  TAPEDECK_DEVICE A identity() const { return A(1); }
  TAPEDECK_DEVICE A at(Value<S> x, Value<S>, std::int64_t) const { return static_cast<A>(x); }
  TAPEDECK_DEVICE A combine(A a, A b) const { return a * b; }
  TAPEDECK_DEVICE Value<S> finish(A total, Value<S>, std::int64_t) const { return static_cast<Value<S>>(total); }
};

template <class S>
struct ExtremeOp {
  using In = S;
  using A = Value<S>;
  using Out = S;
  static constexpr bool kPacks = false;
  static constexpr bool kShifts = false;
  bool largest;

  TAPEDECK_DEVICE A identity() const {
    using Limits = std::numeric_limits<A>;
    if constexpr (Limits::has_infinity)
      return largest ? -Limits::infinity() : Limits::infinity();
    else
      return largest ? Limits::lowest() : Limits::max();
  }
  TAPEDECK_DEVICE A at(A x, A, std::int64_t) const { return x; }
  TAPEDECK_DEVICE A combine(A a, A b) const { return largest ? Maximum{}(a, b) : Minimum{}(a, b); }
  TAPEDECK_DEVICE A finish(A total, A, std::int64_t) const { return total; }
};

inline const Ints& axes_of(const KernelCall& call) { return call.attributes<ReduceAttrs>().axes; }

inline void extremum(const KernelCall& call, bool largest) {
  if (call.outputs[0].numel() > 0 && call.inputs[0].numel() == 0) call.fault->report("maximum or minimum of no elements", 0);
  for_wide_numbers(call, call.inputs[0].dtype,
                   [&](auto t) { fold_view(call, axes_of(call), ExtremeOp<decltype(t)>{largest}); });
}

}  // namespace folds

std::int64_t sum_workspace(const KernelCall& call) { return folds::view_workspace(call, folds::axes_of(call), 8); }
std::int64_t mean_workspace(const KernelCall& call) { return folds::view_workspace(call, folds::axes_of(call), 8); }
std::int64_t max_workspace(const KernelCall& call) { return folds::view_workspace(call, folds::axes_of(call), 8); }
std::int64_t min_workspace(const KernelCall& call) { return folds::view_workspace(call, folds::axes_of(call), 8); }
std::int64_t prod_workspace(const KernelCall& call) { return folds::view_workspace(call, folds::axes_of(call), 8); }

void sum(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  const auto run = [&](auto t) { folds::fold_view(call, folds::axes_of(call), folds::SumOp<decltype(t)>{false}); };
  if (is_half(dtype)) return for_floats(call, dtype, run);
  for_wide_numbers(call, dtype, run);
}

void mean(const KernelCall& call) {
  for_floats(call, call.inputs[0].dtype,
             [&](auto t) { folds::fold_view(call, folds::axes_of(call), folds::SumOp<decltype(t)>{true}); });
}

void max(const KernelCall& call) { folds::extremum(call, true); }
void min(const KernelCall& call) { folds::extremum(call, false); }

void prod(const KernelCall& call) {
  for_wide_numbers(call, call.inputs[0].dtype,
                   [&](auto t) { folds::fold_view(call, folds::axes_of(call), folds::ProductOp<decltype(t)>{}); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
