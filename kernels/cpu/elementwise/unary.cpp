// Functions of one operand: one functor of scalar.h or scalar_functions.h per kernel.
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class F>
void numbers(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, F{});
  });
}

template <class F>
void floats(const KernelCall& call, double f32_ns, double f64_ns) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, F{}, sizeof(T) == 4 ? f32_ns : f64_ns);
  });
}

}  // namespace

void neg(const KernelCall& call) { numbers<Neg>(call); }
void abs(const KernelCall& call) { numbers<Abs>(call); }
void sign(const KernelCall& call) { numbers<Sign>(call); }
void relu(const KernelCall& call) { numbers<Relu>(call); }
void square(const KernelCall& call) { numbers<Square>(call); }
void exp(const KernelCall& call) { floats<Exp>(call, 0.5, 5); }
void log(const KernelCall& call) { floats<Log>(call, 0.5, 5); }
void tanh(const KernelCall& call) { floats<Tanh>(call, 0.8, 10); }
void sigmoid(const KernelCall& call) { floats<Sigmoid>(call, 0.8, 6); }
void sqrt(const KernelCall& call) { floats<Sqrt>(call, 0.5, 1); }
void rsqrt(const KernelCall& call) { floats<Rsqrt>(call, 0.8, 2); }
void sin(const KernelCall& call) { floats<Sin>(call, 0.8, 8); }
void cos(const KernelCall& call) { floats<Cos>(call, 0.8, 8); }

}  // namespace tapedeck::kernels::cpu
