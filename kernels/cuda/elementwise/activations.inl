// Activations, and the gradients of activations that have a kernel of their own. A functor with attributes gets them converted
// to the type of the arithmetic.
#pragma once

#include <tapedeck/kernels/attrs/activation.h>
#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cuda/elementwise/families.h>
#include <tapedeck/kernels/scalar_activations.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline bool gelu_by_tanh(const KernelCall& call) { return call.attributes<GeluAttrs>().approximate.view() == "tanh"; }

void gelu(const KernelCall& call) { gelu_by_tanh(call) ? unary_floats<GeluTanh>(call) : unary_floats<Gelu>(call); }
void gelu_grad(const KernelCall& call) {
  gelu_by_tanh(call) ? binary_floats<GeluTanhGrad>(call) : binary_floats<GeluGrad>(call);
}

TAPEDECK_MAPPED(silu, unary_floats, Silu)
TAPEDECK_MAPPED(silu_grad, binary_floats, SiluGrad)
TAPEDECK_MAPPED(hardsigmoid, unary_floats, HardSigmoid)
TAPEDECK_MAPPED(hardswish, unary_floats, HardSwish)
TAPEDECK_MAPPED(hardswish_grad, binary_floats, HardSwishGrad)
TAPEDECK_MAPPED(mish, unary_floats, Mish)
TAPEDECK_MAPPED(mish_grad, binary_floats, MishGrad)
TAPEDECK_MAPPED(softsign, unary_floats, Softsign)
TAPEDECK_MAPPED(logsigmoid, unary_floats, LogSigmoid)
TAPEDECK_MAPPED(tanhshrink, unary_floats, TanhShrink)
TAPEDECK_MAPPED(prelu, binary_floats, Prelu)

void softplus(const KernelCall& call) {
  const auto& a = call.attributes<SoftplusAttrs>();
  unary_floats_of(call, [&](auto t) {
    using T = decltype(t);
    return Softplus<T>{static_cast<T>(a.beta), static_cast<T>(1 / a.beta), static_cast<T>(a.threshold)};
  });
}
void softplus_grad(const KernelCall& call) {
  const auto& a = call.attributes<SoftplusAttrs>();
  binary_floats_of(call, [&](auto t) {
    using T = decltype(t);
    return SoftplusGrad<T>{static_cast<T>(a.beta), static_cast<T>(a.threshold)};
  });
}

inline void elu_by(const KernelCall& call, double alpha, double scale, double slope) {
  unary_floats_of(call, [&](auto t) {
    using T = decltype(t);
    return Elu<T>{static_cast<T>(alpha), static_cast<T>(scale), static_cast<T>(slope)};
  });
}
void elu(const KernelCall& call) { elu_by(call, call.attributes<EluAttrs>().alpha, 1, 1); }
void selu(const KernelCall& call) { elu_by(call, kSeluAlpha, kSeluScale, 1); }
void celu(const KernelCall& call) {
  const double alpha = call.attributes<EluAttrs>().alpha;
  elu_by(call, alpha, 1, 1 / alpha);
}
void elu_grad(const KernelCall& call) {
  const auto& a = call.attributes<EluGradAttrs>();
  binary_floats_of(call, [&](auto t) {
    using T = decltype(t);
    const T scale = static_cast<T>(a.scale);
    return EluGrad<T>{static_cast<T>(a.alpha) * scale, scale, static_cast<T>(a.slope)};
  });
}

void clamp_grad(const KernelCall& call) {
  const auto& a = call.attributes<ClampAttrs>();
  binary_floats_of(call, [&](auto t) {
    using T = decltype(t);
    return ClampGrad<T>{static_cast<T>(a.min), static_cast<T>(a.max)};
  });
}

void leaky_relu(const KernelCall& call) {
  const double slope = call.attributes<LeakyReluAttrs>().slope;
  unary_floats_of(call, [&](auto t) { return LeakyRelu<decltype(t)>{static_cast<decltype(t)>(slope)}; });
}
void hardshrink(const KernelCall& call) {
  const double bound = call.attributes<ShrinkAttrs>().bound;
  unary_floats_of(call, [&](auto t) { return HardShrink<decltype(t)>{static_cast<decltype(t)>(bound)}; });
}
void softshrink(const KernelCall& call) {
  const double bound = call.attributes<ShrinkAttrs>().bound;
  unary_floats_of(call, [&](auto t) { return SoftShrink<decltype(t)>{static_cast<decltype(t)>(bound)}; });
}
void threshold(const KernelCall& call) {
  const auto& a = call.attributes<ThresholdAttrs>();
  unary_floats_of(call, [&](auto t) {
    using T = decltype(t);
    return Threshold<T>{static_cast<T>(a.threshold), static_cast<T>(a.value)};
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
