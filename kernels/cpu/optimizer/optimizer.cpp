// One update of one tensor by an optimizer: sgd, momentum, adam, rmsprop and others. An output may lie on exactly the bytes of
// the input that it replaces. A last operand of type bool can switch the step off: if it is false, the outputs equal the inputs
// that they replace.
#include <tapedeck/kernels/attrs/optimizer.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <cmath>
#include <cstring>
#include <initializer_list>

namespace tapedeck::kernels::cpu {
namespace {

// A scalar operand as T. The learning rate may have another floating type than the weights.
template <class T>
T scalar_of(const View& v) {
  return v.dtype == DType::f64 ? static_cast<T>(*v.as<double>()) : static_cast<T>(*v.as<float>());
}

double count_of(const View& v) { return static_cast<double>(*v.as<std::int64_t>()); }

// Output k replaces input replaced[k]. Returns true if the step is switched off; the outputs are then already copied.
bool skipped(const KernelCall& call, std::initializer_list<int> replaced) {
  const View& last = call.inputs[call.n_inputs - 1];
  if (last.dtype != DType::boolean || *last.as<unsigned char>() != 0) return false;
  int k = 0;
  for (const int i : replaced) {
    const View &from = call.inputs[i], &to = call.outputs[k++];
    if (from.data == to.data) continue;
    const auto* in = from.as<char>();
    auto* out = to.as<char>();
    parallel_for(to.numel() * static_cast<std::int64_t>(dtype_size(to.dtype)), std::int64_t{512} * 1024,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::memcpy(out + begin, in + begin, static_cast<std::size_t>(end - begin));
                 });
  }
  return true;
}

// Calls body(i) for every element i, in parallel.
template <class Body>
void for_elements(const KernelCall& call, double ns, Body&& body) {
  parallel_for(call.outputs[0].numel(), grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    const auto step =
        body;  // a copy that no other code can reach: the compiler then knows that no result is written over its numbers
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) step(i);
  });
}

template <class T>
void sgd_of(const KernelCall& call) {
  const T decay = static_cast<T>(call.attributes<SgdAttrs>().weight_decay), rate = scalar_of<T>(call.inputs[2]);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>();
  T* next = call.outputs[0].as<T>();
  for_elements(call, 0.5, [=](std::int64_t i) { next[i] = w[i] - rate * (g[i] + decay * w[i]); });
}

// Operands: w, g, v, [step count,] lr. With a step count, the first step ignores the dampening.
template <class T>
void sgd_momentum_of(const KernelCall& call) {
  const auto& attrs = call.attributes<MomentumAttrs>();
  const bool counted = call.inputs[3].dtype == DType::i64, first = counted && count_of(call.inputs[3]) == 1;
  const T decay = static_cast<T>(attrs.weight_decay), momentum = static_cast<T>(attrs.momentum),
          fresh = first ? T(1) : static_cast<T>(1 - attrs.dampening), rate = scalar_of<T>(call.inputs[counted ? 4 : 3]);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *v = call.inputs[2].as<T>();
  T *next_w = call.outputs[0].as<T>(), *next_v = call.outputs[1].as<T>();
  if (attrs.nesterov) {
    for_elements(call, 0.7, [=](std::int64_t i) {
      const T gradient = g[i] + decay * w[i];
      const T velocity = momentum * v[i] + fresh * gradient;
      const T weight = w[i] - rate * (gradient + momentum * velocity);
      next_v[i] = velocity;
      next_w[i] = weight;
    });
    return;
  }
  for_elements(call, 0.7, [=](std::int64_t i) {
    const T velocity = momentum * v[i] + fresh * (g[i] + decay * w[i]);
    const T weight = w[i] - rate * velocity;
    next_v[i] = velocity;
    next_w[i] = weight;
  });
}

// Adam: with decoupled weight decay (AdamW) or without, and with the largest second moment so far (AMSGrad) or the present one.
template <class T, bool kDecoupled, bool kLargest>
void adam_of(const KernelCall& call) {
  const auto& attrs = call.attributes<AdamAttrs>();
  const double step = count_of(call.inputs[kLargest ? 5 : 4]);
  const T rate = scalar_of<T>(call.inputs[kLargest ? 6 : 5]);
  const T beta1 = static_cast<T>(attrs.beta1), beta2 = static_cast<T>(attrs.beta2), eps = static_cast<T>(attrs.eps);
  const T rest1 = static_cast<T>(1 - attrs.beta1), rest2 = static_cast<T>(1 - attrs.beta2);
  const T unbias1 = static_cast<T>(1 / (1 - std::pow(attrs.beta1, step))),
          unbias2 = static_cast<T>(1 / (1 - std::pow(attrs.beta2, step)));
  const T decay = kDecoupled ? T(0) : static_cast<T>(attrs.weight_decay);
  const T keep = kDecoupled ? T(1) - rate * static_cast<T>(attrs.weight_decay) : T(1);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *m = call.inputs[2].as<T>(), *v = call.inputs[3].as<T>();
  const T* x = kLargest ? call.inputs[4].as<T>() : nullptr;
  T *next_w = call.outputs[0].as<T>(), *next_m = call.outputs[1].as<T>(), *next_v = call.outputs[2].as<T>();
  T* next_x = kLargest ? call.outputs[3].as<T>() : nullptr;
  for_elements(call, 1.5, [=](std::int64_t i) {
    const T gradient = kDecoupled ? g[i] : g[i] + decay * w[i];
    const T first = beta1 * m[i] + rest1 * gradient;
    const T second = beta2 * v[i] + rest2 * (gradient * gradient);
    const T size = kLargest ? Maximum{}(x[i], second) : second;
    const T weight = w[i] * keep - rate * (first * unbias1) / (std::sqrt(size * unbias2) + eps);
    next_m[i] = first;
    next_v[i] = second;
    if constexpr (kLargest) next_x[i] = size;
    next_w[i] = weight;
  });
}

// Operands: w, g, mean of squares, [mean,] [velocity,] lr.
template <class T, bool kCentered, bool kMomentum>
void rmsprop_of(const KernelCall& call) {
  const auto& attrs = call.attributes<RmspropAttrs>();
  const T alpha = static_cast<T>(attrs.alpha), rest = static_cast<T>(1 - attrs.alpha), eps = static_cast<T>(attrs.eps),
          decay = static_cast<T>(attrs.weight_decay), momentum = static_cast<T>(attrs.momentum),
          rate = scalar_of<T>(call.inputs[3 + kCentered + kMomentum]);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *s = call.inputs[2].as<T>();
  const T* a = kCentered ? call.inputs[3].as<T>() : nullptr;
  const T* v = kMomentum ? call.inputs[3 + kCentered].as<T>() : nullptr;
  T *next_w = call.outputs[0].as<T>(), *next_s = call.outputs[1].as<T>();
  T* next_a = kCentered ? call.outputs[2].as<T>() : nullptr;
  T* next_v = kMomentum ? call.outputs[2 + kCentered].as<T>() : nullptr;
  for_elements(call, 1.5, [=](std::int64_t i) {
    const T gradient = g[i] + decay * w[i];
    const T squares = alpha * s[i] + rest * (gradient * gradient);
    T spread = squares;
    if constexpr (kCentered) {
      const T mean = alpha * a[i] + rest * gradient;
      spread = Maximum{}(squares - mean * mean, T(0));  // rounding must not make the variance negative
      next_a[i] = mean;
    }
    T way = gradient / (std::sqrt(spread) + eps);
    if constexpr (kMomentum) {
      way = momentum * v[i] + way;
      next_v[i] = way;
    }
    const T weight = w[i] - rate * way;
    next_s[i] = squares;
    next_w[i] = weight;
  });
}

template <class T>
void adagrad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<AdagradAttrs>();
  const T rate = scalar_of<T>(call.inputs[4]) / static_cast<T>(1 + (count_of(call.inputs[3]) - 1) * attrs.lr_decay);
  const T eps = static_cast<T>(attrs.eps), decay = static_cast<T>(attrs.weight_decay);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *s = call.inputs[2].as<T>();
  T *next_w = call.outputs[0].as<T>(), *next_s = call.outputs[1].as<T>();
  for_elements(call, 1.2, [=](std::int64_t i) {
    const T gradient = g[i] + decay * w[i];
    const T squares = s[i] + gradient * gradient;
    const T weight = w[i] - rate * gradient / (std::sqrt(squares) + eps);
    next_s[i] = squares;
    next_w[i] = weight;
  });
}

template <class T>
void adadelta_of(const KernelCall& call) {
  const auto& attrs = call.attributes<AdadeltaAttrs>();
  const T rho = static_cast<T>(attrs.rho), rest = static_cast<T>(1 - attrs.rho), eps = static_cast<T>(attrs.eps),
          decay = static_cast<T>(attrs.weight_decay), rate = scalar_of<T>(call.inputs[4]);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *s = call.inputs[2].as<T>(), *d = call.inputs[3].as<T>();
  T *next_w = call.outputs[0].as<T>(), *next_s = call.outputs[1].as<T>(), *next_d = call.outputs[2].as<T>();
  for_elements(call, 2, [=](std::int64_t i) {
    const T gradient = g[i] + decay * w[i];
    const T squares = rho * s[i] + rest * (gradient * gradient);
    const T way = std::sqrt(d[i] + eps) / std::sqrt(squares + eps) * gradient;
    const T ways = rho * d[i] + rest * (way * way);
    const T weight = w[i] - rate * way;
    next_s[i] = squares;
    next_d[i] = ways;
    next_w[i] = weight;
  });
}

template <class T>
void lion_of(const KernelCall& call) {
  const auto& attrs = call.attributes<LionAttrs>();
  const T beta1 = static_cast<T>(attrs.beta1), rest1 = static_cast<T>(1 - attrs.beta1), beta2 = static_cast<T>(attrs.beta2),
          rest2 = static_cast<T>(1 - attrs.beta2), rate = scalar_of<T>(call.inputs[3]);
  const T keep = T(1) - rate * static_cast<T>(attrs.weight_decay);
  const T *w = call.inputs[0].as<T>(), *g = call.inputs[1].as<T>(), *m = call.inputs[2].as<T>();
  T *next_w = call.outputs[0].as<T>(), *next_m = call.outputs[1].as<T>();
  for_elements(call, 0.8, [=](std::int64_t i) {
    const T way = beta1 * m[i] + rest1 * g[i];
    const T sign = way > T(0) ? T(1) : way < T(0) ? T(-1) : way;  // 0 and NaN stay as they are
    const T mean = beta2 * m[i] + rest2 * g[i];
    const T weight = w[i] * keep - rate * sign;
    next_m[i] = mean;
    next_w[i] = weight;
  });
}

template <bool kDecoupled, bool kLargest>
void adam_step(const KernelCall& call) {
  if (kLargest ? skipped(call, {0, 2, 3, 4}) : skipped(call, {0, 2, 3})) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { adam_of<decltype(t), kDecoupled, kLargest>(call); });
}

template <bool kCentered, bool kMomentum>
void rmsprop_step(const KernelCall& call) {
  if (kCentered && kMomentum   ? skipped(call, {0, 2, 3, 4})
      : kCentered || kMomentum ? skipped(call, {0, 2, 3})
                               : skipped(call, {0, 2}))
    return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { rmsprop_of<decltype(t), kCentered, kMomentum>(call); });
}

}  // namespace

void sgd(const KernelCall& call) {
  if (skipped(call, {0})) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { sgd_of<decltype(t)>(call); });
}

void sgd_momentum(const KernelCall& call) {
  if (skipped(call, {0, 2})) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { sgd_momentum_of<decltype(t)>(call); });
}

void adamw(const KernelCall& call) { adam_step<true, false>(call); }
void adam(const KernelCall& call) { adam_step<false, false>(call); }
void adamw_amsgrad(const KernelCall& call) { adam_step<true, true>(call); }
void adam_amsgrad(const KernelCall& call) { adam_step<false, true>(call); }

void rmsprop(const KernelCall& call) { rmsprop_step<false, false>(call); }
void rmsprop_momentum(const KernelCall& call) { rmsprop_step<false, true>(call); }
void rmsprop_centered(const KernelCall& call) { rmsprop_step<true, false>(call); }
void rmsprop_centered_momentum(const KernelCall& call) { rmsprop_step<true, true>(call); }

void adagrad(const KernelCall& call) {
  if (skipped(call, {0, 2})) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { adagrad_of<decltype(t)>(call); });
}

void adadelta(const KernelCall& call) {
  if (skipped(call, {0, 2, 3})) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { adadelta_of<decltype(t)>(call); });
}

void lion(const KernelCall& call) {
  if (skipped(call, {0, 2})) return;
  for_floats(call, call.outputs[0].dtype, [&](auto t) { lion_of<decltype(t)>(call); });
}

void count_next(const KernelCall& call) {
  if (skipped(call, {0})) return;
  *call.outputs[0].as<std::int64_t>() = Add{}(*call.inputs[0].as<std::int64_t>(), std::int64_t{1});
}

}  // namespace tapedeck::kernels::cpu
