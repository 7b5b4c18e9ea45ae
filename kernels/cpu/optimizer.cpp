// One step of an optimizer on one tensor. Every output may be the very bytes of the input it replaces.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <cmath>

namespace tapedeck::kernels::cpu {
namespace {

// The learning rate may be of another floating type than the weights.
template <class T>
T scalar_of(const View& v) {
  return v.dtype == DType::f64 ? static_cast<T>(*v.as<double>()) : static_cast<T>(*v.as<float>());
}

template <class T>
void sgd_of(const KernelCall& call) {
  const T decay = static_cast<T>(call.attributes<SgdAttrs>().weight_decay), rate = scalar_of<T>(call.inputs[2]);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>();
  T* next = call.outputs[0].as<T>();
  parallel_for(call.outputs[0].numel(), grain_for(0.5), [&](std::int64_t begin, std::int64_t end) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) next[i] = w[i] - rate * (g[i] + decay * w[i]);
  });
}

template <class T>
void sgd_momentum_of(const KernelCall& call) {
  const auto& attrs = call.attributes<SgdAttrs>();
  const T decay = static_cast<T>(attrs.weight_decay), momentum = static_cast<T>(attrs.momentum),
          rate = scalar_of<T>(call.inputs[3]);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *v = call.inputs[2].as<T>();
  T *next_w = call.outputs[0].as<T>(), *next_v = call.outputs[1].as<T>();
  parallel_for(call.outputs[0].numel(), grain_for(0.7), [&](std::int64_t begin, std::int64_t end) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      const T velocity = momentum * v[i] + (g[i] + decay * w[i]);
      const T weight = w[i] - rate * velocity;
      next_v[i] = velocity;
      next_w[i] = weight;
    }
  });
}

template <class T>
void adamw_of(const KernelCall& call) {
  const auto& attrs = call.attributes<AdamAttrs>();
  const double step = static_cast<double>(*call.inputs[4].as<std::int64_t>());
  const T rate = scalar_of<T>(call.inputs[5]);
  const T beta1 = static_cast<T>(attrs.beta1), beta2 = static_cast<T>(attrs.beta2), eps = static_cast<T>(attrs.eps);
  const T rest1 = static_cast<T>(1 - attrs.beta1), rest2 = static_cast<T>(1 - attrs.beta2);
  const T unbias1 = static_cast<T>(1 / (1 - std::pow(attrs.beta1, step))),
          unbias2 = static_cast<T>(1 / (1 - std::pow(attrs.beta2, step)));
  const T keep = T(1) - rate * static_cast<T>(attrs.weight_decay);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *m = call.inputs[2].as<T>(), *v = call.inputs[3].as<T>();
  T *next_w = call.outputs[0].as<T>(), *next_m = call.outputs[1].as<T>(), *next_v = call.outputs[2].as<T>();
  parallel_for(call.outputs[0].numel(), grain_for(1.5), [&](std::int64_t begin, std::int64_t end) {
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      const T first = beta1 * m[i] + rest1 * g[i];
      const T second = beta2 * v[i] + rest2 * (g[i] * g[i]);
      const T weight = w[i] * keep - rate * (first * unbias1) / (std::sqrt(second * unbias2) + eps);
      next_m[i] = first;
      next_v[i] = second;
      next_w[i] = weight;
    }
  });
}

}  // namespace

void sgd(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { sgd_of<decltype(t)>(call); });
}

void sgd_momentum(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { sgd_momentum_of<decltype(t)>(call); });
}

void adamw(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { adamw_of<decltype(t)>(call); });
}

void count_next(const KernelCall& call) {
  *call.outputs[0].as<std::int64_t>() = Add{}(*call.inputs[0].as<std::int64_t>(), std::int64_t{1});
}

}  // namespace tapedeck::kernels::cpu
