// Comparisons, logic, and selection by a condition.
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar.h>

namespace tapedeck::kernels::cpu {
namespace {

// Booleans are compared as bytes.
template <class F>
void compare(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, [&](auto t) {
    using T = decltype(t);
    map<std::uint8_t, T, T>(call, F{});
  });
}

}  // namespace

void equal(const KernelCall& call) { compare<Equal>(call); }
void not_equal(const KernelCall& call) { compare<NotEqual>(call); }
void less(const KernelCall& call) { compare<Less>(call); }
void less_equal(const KernelCall& call) { compare<LessEqual>(call); }
void greater(const KernelCall& call) { compare<Greater>(call); }
void greater_equal(const KernelCall& call) { compare<GreaterEqual>(call); }

void logical_and(const KernelCall& call) { map<std::uint8_t, std::uint8_t, std::uint8_t>(call, LogicalAnd{}); }
void logical_or(const KernelCall& call) { map<std::uint8_t, std::uint8_t, std::uint8_t>(call, LogicalOr{}); }
void logical_not(const KernelCall& call) { map<std::uint8_t, std::uint8_t>(call, LogicalNot{}); }

void where(const KernelCall& call) {
  for_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, std::uint8_t, T, T>(call, Where{});
  });
}

}  // namespace tapedeck::kernels::cpu
