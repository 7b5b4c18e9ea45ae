// Activations, and the gradients of activations that have a kernel of their own. Each kernel maps a functor of
// scalar_activations.h over its operands; a functor with attributes gets them converted to the element type:
//
//   leaky_relu {slope=0.01} on f32   ->   map<float, float>(call, LeakyRelu<float>{0.01f})
#include <tapedeck/kernels/attrs/activation.h>
#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar_activations.h>

namespace tapedeck::kernels::cpu {
namespace {

// Maps make(T{}) over one operand: the functor is made for the element type. The costs in nanoseconds per element set the
// grain.
template <class Make>
void of_one(const KernelCall& call, double f32_ns, double f64_ns, const Make& make) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, make(t), sizeof(T) == 4 ? f32_ns : f64_ns);
  });
}
template <class Make>
void of_two(const KernelCall& call, double f32_ns, double f64_ns, const Make& make) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, make(t), sizeof(T) == 4 ? f32_ns : f64_ns);
  });
}

// Maps a functor without attributes.
template <class F>
void plain(const KernelCall& call, double f32_ns, double f64_ns) {
  of_one(call, f32_ns, f64_ns, [](auto) { return F{}; });
}
template <class F>
void plain_grad(const KernelCall& call, double f32_ns, double f64_ns) {
  of_two(call, f32_ns, f64_ns, [](auto) { return F{}; });
}

void elu_of(const KernelCall& call, double alpha, double scale, double slope) {
  of_one(call, 0.8, 10, [&](auto t) {
    using T = decltype(t);
    return Elu<T>{static_cast<T>(alpha), static_cast<T>(scale), static_cast<T>(slope)};
  });
}

bool by_tanh(const KernelCall& call) { return call.attributes<GeluAttrs>().approximate.view() == "tanh"; }

}  // namespace

void gelu(const KernelCall& call) { by_tanh(call) ? plain<GeluTanh>(call, 0.8, 8) : plain<Gelu>(call, 1, 15); }
void gelu_grad(const KernelCall& call) {
  by_tanh(call) ? plain_grad<GeluTanhGrad>(call, 1, 8) : plain_grad<GeluGrad>(call, 1, 20);
}
void silu(const KernelCall& call) { plain<Silu>(call, 0.8, 6); }
void silu_grad(const KernelCall& call) { plain_grad<SiluGrad>(call, 0.8, 6); }
void hardsigmoid(const KernelCall& call) { plain<HardSigmoid>(call, 0.5, 1); }
void hardswish(const KernelCall& call) { plain<HardSwish>(call, 0.5, 1); }
void hardswish_grad(const KernelCall& call) { plain_grad<HardSwishGrad>(call, 0.5, 1); }
void mish(const KernelCall& call) { plain<Mish>(call, 0.8, 6); }
void mish_grad(const KernelCall& call) { plain_grad<MishGrad>(call, 1.5, 12); }
void softsign(const KernelCall& call) { plain<Softsign>(call, 0.5, 1); }
void logsigmoid(const KernelCall& call) { plain<LogSigmoid>(call, 1.2, 15); }
void tanhshrink(const KernelCall& call) { plain<TanhShrink>(call, 0.8, 10); }
void prelu(const KernelCall& call) { plain_grad<Prelu>(call, 0.5, 0.5); }

void softplus(const KernelCall& call) {
  const auto& a = call.attributes<SoftplusAttrs>();
  of_one(call, 1.2, 15, [&](auto t) {
    using T = decltype(t);
    return Softplus<T>{static_cast<T>(a.beta), static_cast<T>(1 / a.beta), static_cast<T>(a.threshold)};
  });
}
void softplus_grad(const KernelCall& call) {
  const auto& a = call.attributes<SoftplusAttrs>();
  of_two(call, 0.8, 10, [&](auto t) {
    using T = decltype(t);
    return SoftplusGrad<T>{static_cast<T>(a.beta), static_cast<T>(a.threshold)};
  });
}

void elu(const KernelCall& call) { elu_of(call, call.attributes<EluAttrs>().alpha, 1, 1); }
void selu(const KernelCall& call) { elu_of(call, kSeluAlpha, kSeluScale, 1); }
void celu(const KernelCall& call) {
  const double alpha = call.attributes<EluAttrs>().alpha;
  elu_of(call, alpha, 1, 1 / alpha);
}
void elu_grad(const KernelCall& call) {
  const auto& a = call.attributes<EluGradAttrs>();
  of_two(call, 0.5, 0.5, [&](auto t) {
    using T = decltype(t);
    const T scale = static_cast<T>(a.scale);
    return EluGrad<T>{static_cast<T>(a.alpha) * scale, scale, static_cast<T>(a.slope)};
  });
}

void clamp_grad(const KernelCall& call) {
  const auto& a = call.attributes<ClampAttrs>();
  of_two(call, 0.5, 0.5, [&](auto t) {
    using T = decltype(t);
    return ClampGrad<T>{static_cast<T>(a.min), static_cast<T>(a.max)};
  });
}

void leaky_relu(const KernelCall& call) {
  of_one(call, 0.5, 0.5,
         [&](auto t) { return LeakyRelu<decltype(t)>{static_cast<decltype(t)>(call.attributes<LeakyReluAttrs>().slope)}; });
}
void hardshrink(const KernelCall& call) {
  of_one(call, 0.5, 0.5,
         [&](auto t) { return HardShrink<decltype(t)>{static_cast<decltype(t)>(call.attributes<ShrinkAttrs>().bound)}; });
}
void softshrink(const KernelCall& call) {
  of_one(call, 0.5, 0.5,
         [&](auto t) { return SoftShrink<decltype(t)>{static_cast<decltype(t)>(call.attributes<ShrinkAttrs>().bound)}; });
}
void threshold(const KernelCall& call) {
  const auto& a = call.attributes<ThresholdAttrs>();
  of_one(call, 0.5, 0.5, [&](auto t) {
    using T = decltype(t);
    return Threshold<T>{static_cast<T>(a.threshold), static_cast<T>(a.value)};
  });
}

}  // namespace tapedeck::kernels::cpu
