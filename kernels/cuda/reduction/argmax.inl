// argmax and argmin along one axis of a view of any strides, on the device. Of equal extremes the first counts; the first NaN
// counts as the extreme.
#pragma once

#include <tapedeck/kernels/cuda/reduction/view_fold.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

template <class T>
struct Found {
  T value;
  std::int64_t place;  // -1: nothing yet
};
template <class T>
TAPEDECK_DEVICE Found<T> from_lane_below(const Found<T>& f, unsigned delta) {
  return {shuffle_down(f.value, delta), shuffle_down(f.place, delta)};
}

template <class T>
struct PlaceOp {
  using In = T;
  using A = Found<Value<T>>;
  using Out = std::int64_t;
  static constexpr bool kPacks = false;
  static constexpr bool kShifts = false;
  bool largest;

  TAPEDECK_DEVICE A identity() const { return {0, -1}; }
  TAPEDECK_DEVICE A at(Value<T> x, Value<T>, std::int64_t i) const { return {x, i}; }
  TAPEDECK_DEVICE A combine(const A& a, const A& b) const {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (a_nan || a.value == b.value) return a.place < b.place ? a : b;
    return (a.value > b.value) == largest ? a : b;
  }
  TAPEDECK_DEVICE std::int64_t finish(const A& found, Value<T>, std::int64_t) const {
    return found.place < 0 ? 0 : found.place;
  }
};

inline Ints axis_of(const KernelCall& call) { return {call.attributes<AxisAttrs>().axis}; }

inline void place_of_extreme(const KernelCall& call, bool largest) {
  if (call.outputs[0].numel() > 0 && call.inputs[0].numel() == 0) call.fault->report("argmax or argmin of no elements", 0);
  for_wide_numbers(call, call.inputs[0].dtype, [&](auto t) { fold_view(call, axis_of(call), PlaceOp<decltype(t)>{largest}); });
}

}  // namespace folds

std::int64_t argmax_workspace(const KernelCall& call) { return folds::view_workspace(call, folds::axis_of(call), 16); }
std::int64_t argmin_workspace(const KernelCall& call) { return folds::view_workspace(call, folds::axis_of(call), 16); }
void argmax(const KernelCall& call) { folds::place_of_extreme(call, true); }
void argmin(const KernelCall& call) { folds::place_of_extreme(call, false); }

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
