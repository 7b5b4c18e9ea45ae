// Elementwise losses: one pass without temporaries. A reduction of the losses is a separate op.
#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/loss_scalar.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class F>
void pairs(const KernelCall& call, const F& f, double ns_f32) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, f, sizeof(T) == 4 ? ns_f32 : 20);
  });
}

}  // namespace

void huber(const KernelCall& call) {
  const Huber f{call.attributes<HuberAttrs>().delta};
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, f);
  });
}

void binary_cross_entropy(const KernelCall& call) { pairs(call, BinaryCrossEntropy{}, 1); }

void binary_cross_entropy_with_logits(const KernelCall& call) {
  if (call.n_inputs == 2) return pairs(call, BinaryCrossEntropyWithLogits{}, 1);
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T, T>(call, BinaryCrossEntropyWithLogits{}, sizeof(T) == 4 ? 1 : 20);
  });
}

void kl_div(const KernelCall& call) {
  if (call.attributes<KlDivAttrs>().log_target) return pairs(call, KlDivLogTarget{}, 1);
  pairs(call, KlDiv{}, 1);
}

}  // namespace tapedeck::kernels::cpu
