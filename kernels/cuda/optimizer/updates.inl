// One update of one tensor by an optimizer, the step count, and the scale of the loss.
#pragma once

#include <tapedeck/kernels/cuda/optimizer/update_rules.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// The first thread of a block makes the shared numbers: adam takes two powers, which would be much work for every thread.
template <class T, class Update>
TAPEDECK_KERNEL void update_kernel(const Step<Update> s) {
  using V = Value<T>;
  constexpr int kCount = 16 / sizeof(V);
  if (s.condition && *s.condition == 0) return keep<T>(s, {thread_index(), s.n, thread_count()});
  TAPEDECK_SHARED typename Update::template Numbers<V> numbers;
  if (threadIdx.x == 0)
    numbers = s.update.template numbers<V>(scalar_at<V>(s.rate, s.rate_dtype), s.count ? static_cast<double>(*s.count) : 0.0);
  sync_block();
  for (std::int64_t i = thread_index(); i < s.packs; i += thread_count()) update_pack<kCount, T>(s, numbers, i * kCount);
  for (std::int64_t i = s.packs * kCount + thread_index(); i < s.n; i += thread_count()) update_one<T>(s, numbers, i);
}

// A block costs the shared numbers, so fewer blocks than elsewhere do more each.
inline constexpr std::int64_t kMostUpdateBlocks = 1024;

// The operands of the call are those of step_of().
template <class Update>
void run_update(const KernelCall& call, const Update& update, bool counted) {
  const Step<Update> s = step_of(call.inputs, call.n_inputs, call.outputs, update, counted);
  if (s.n == 0) return;
  Launch size = for_items(s.packs > 0 ? s.packs : s.n);
  if (size.blocks > kMostUpdateBlocks) size.blocks = kMostUpdateBlocks;
  for_reals(call, s.dtype, [&](auto t) { launch<Step<Update>>(call, &update_kernel<decltype(t), Update>, size, s); });
}

void sgd(const KernelCall& call) { run_update(call, Sgd{call.attributes<SgdAttrs>().weight_decay}, false); }

void sgd_momentum(const KernelCall& call) {
  const auto& a = call.attributes<MomentumAttrs>();
  run_update(call, SgdMomentum{a.momentum, a.weight_decay, a.dampening, a.nesterov}, call.inputs[3].dtype == DType::i64);
}

template <bool kDecoupled, bool kLargest>
void run_adam(const KernelCall& call) {
  const auto& a = call.attributes<AdamAttrs>();
  run_update(call, Adam<kDecoupled, kLargest>{a.beta1, a.beta2, a.eps, a.weight_decay}, true);
}
void adamw(const KernelCall& call) { run_adam<true, false>(call); }
void adam(const KernelCall& call) { run_adam<false, false>(call); }
void adamw_amsgrad(const KernelCall& call) { run_adam<true, true>(call); }
void adam_amsgrad(const KernelCall& call) { run_adam<false, true>(call); }

template <bool kCentered, bool kMomentum>
void run_rmsprop(const KernelCall& call) {
  const auto& a = call.attributes<RmspropAttrs>();
  run_update(call, Rmsprop<kCentered, kMomentum>{a.alpha, a.eps, a.weight_decay, a.momentum}, false);
}
void rmsprop(const KernelCall& call) { run_rmsprop<false, false>(call); }
void rmsprop_momentum(const KernelCall& call) { run_rmsprop<false, true>(call); }
void rmsprop_centered(const KernelCall& call) { run_rmsprop<true, false>(call); }
void rmsprop_centered_momentum(const KernelCall& call) { run_rmsprop<true, true>(call); }

void adagrad(const KernelCall& call) {
  const auto& a = call.attributes<AdagradAttrs>();
  run_update(call, Adagrad{a.lr_decay, a.eps, a.weight_decay}, true);
}

void adadelta(const KernelCall& call) {
  const auto& a = call.attributes<AdadeltaAttrs>();
  run_update(call, Adadelta{a.rho, a.eps, a.weight_decay}, false);
}

void lion(const KernelCall& call) {
  const auto& a = call.attributes<LionAttrs>();
  run_update(call, Lion{a.beta1, a.beta2, a.weight_decay}, false);
}

// ---- counters ----

struct Count {
  const std::int64_t* in;
  std::int64_t* out;
  const std::uint8_t* condition;
};

TAPEDECK_KERNEL void count_next_kernel(const Count c) {
  const bool counts = !c.condition || *c.condition != 0;
  *c.out = counts ? Add{}(*c.in, std::int64_t{1}) : *c.in;
}

void count_next(const KernelCall& call) {
  launch<Count>(call, &count_next_kernel, Launch{.threads = 1},
                {call.inputs[0].as<std::int64_t>(), call.outputs[0].as<std::int64_t>(),
                 call.n_inputs > 1 ? call.inputs[1].as<std::uint8_t>() : nullptr});
}

// The scale of the loss, the finite steps in a row, and whether this step was finite.
struct LossScale {
  const void* scale;
  void* next_scale;
  DType dtype;
  const std::int64_t* streak;
  std::int64_t* next_streak;
  const std::uint8_t* finite;
  double growth, backoff;
  std::int64_t interval;
};

template <class T>
TAPEDECK_KERNEL void loss_scale_kernel(const LossScale s) {
  using V = Value<T>;
  const V scale = load<T>(s.scale, s.dtype, 0), infinity = std::numeric_limits<V>::infinity();
  const std::int64_t streak = Add{}(*s.streak, std::int64_t{1});
  const bool finite = *s.finite != 0, grows = finite && streak >= s.interval;
  const V grown = scale * static_cast<V>(s.growth);
  store<T>(s.next_scale, s.dtype, 0,
           !finite                                 ? scale * static_cast<V>(s.backoff)
           : grows && std::fabs(grown) != infinity ? grown
                                                   : scale);
  *s.next_streak = finite && !grows ? streak : 0;
}

void loss_scale_next(const KernelCall& call) {
  const auto& a = call.attributes<LossScaleAttrs>();
  const LossScale s{call.inputs[0].data,
                    call.outputs[0].data,
                    call.outputs[0].dtype,
                    call.inputs[1].as<std::int64_t>(),
                    call.outputs[1].as<std::int64_t>(),
                    call.inputs[2].as<std::uint8_t>(),
                    a.growth,
                    a.backoff,
                    a.interval};
  for_reals(call, s.dtype, [&](auto t) { launch<LossScale>(call, &loss_scale_kernel<decltype(t)>, Launch{.threads = 1}, s); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
