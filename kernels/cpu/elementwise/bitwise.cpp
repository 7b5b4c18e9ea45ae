// Bitwise ops on integers. On booleans they are logical ops.
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels::cpu {
namespace {

using Byte = std::uint8_t;

template <class Bits, class Logic>
void combine(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::boolean) return map<Byte, Byte, Byte>(call, Logic{});
  for_integers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, Bits{});
  });
}

// Shifts by F and reports negative counts.
template <class F>
struct Checked {
  KernelFault* fault;
  template <class T>
  T operator()(T a, T b) const {
    if (b < T(0)) fault->report("negative shift count", static_cast<std::int64_t>(b));
    return F{}(a, b);
  }
};

template <class F>
void shift(const KernelCall& call) {
  for_integers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T>(call, Checked<F>{call.fault});
  });
}

}  // namespace

void bitwise_and(const KernelCall& call) { combine<BitwiseAnd, LogicalAnd>(call); }
void bitwise_or(const KernelCall& call) { combine<BitwiseOr, LogicalOr>(call); }
void bitwise_xor(const KernelCall& call) { combine<BitwiseXor, LogicalXor>(call); }
void left_shift(const KernelCall& call) { shift<LeftShift>(call); }
void right_shift(const KernelCall& call) { shift<RightShift>(call); }
void logical_xor(const KernelCall& call) { map<Byte, Byte, Byte>(call, LogicalXor{}); }

void bitwise_not(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::boolean) return map<Byte, Byte>(call, LogicalNot{});
  for_integers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T>(call, BitwiseNot{});
  });
}

}  // namespace tapedeck::kernels::cpu
