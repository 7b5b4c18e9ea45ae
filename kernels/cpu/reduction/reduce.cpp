// sum, mean, max and min over any set of axes of views of any strides.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/reduction/reduce_tree.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class Op, class T>
void fold_all(const KernelCall& call) {
  reduce_view<T>(call.inputs[0], call.attributes<ReduceAttrs>().axes, call.outputs[0].as<T>(),
                 [](const auto& fold, T* out) { fold(Op{}, AsIs{}, out); });
}

template <class Op>
void extremum(const KernelCall& call) {
  if (call.outputs[0].numel() > 0 && call.inputs[0].numel() == 0) call.fault->report("maximum or minimum of no elements", 0);
  for_numbers(call, call.inputs[0].dtype, [&](auto t) { fold_all<Op, decltype(t)>(call); });
}

}  // namespace

void sum(const KernelCall& call) {
  for_numbers(call, call.inputs[0].dtype, [&](auto t) { fold_all<Plus, decltype(t)>(call); });
}

void mean(const KernelCall& call) {
  for_floats(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    const Ints& axes = call.attributes<ReduceAttrs>().axes;
    const T count = static_cast<T>(Split(call.inputs[0], axes).length);
    reduce_view<T>(call.inputs[0], axes, call.outputs[0].as<T>(), [count](const auto& fold, T* out) {
      fold(Plus{}, AsIs{}, out);
      for (int j = 0; j < kWidthOf<decltype(fold)>; ++j) out[j] = out[j] / count;
    });
  });
}

void max(const KernelCall& call) { extremum<Larger>(call); }
void min(const KernelCall& call) { extremum<Smaller>(call); }

}  // namespace tapedeck::kernels::cpu
