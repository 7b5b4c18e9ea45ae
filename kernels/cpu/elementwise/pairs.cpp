#include <tapedeck/kernels/cpu/elementwise/pairs.h>

#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/scalar.h>

#include <utility>

namespace tapedeck::kernels::cpu {
namespace {

// The compiler does not contract the two (-ffp-contract=off), so the value between them is rounded as if it were stored.
template <class First, class Second>
struct InTurn {
  float operator()(float a, float b, float c) const { return Second{}(First{}(a, b), c); }
};

// Bit k stands for operand k, which is one element. A loop is compiled for each pattern that is worth one; other patterns take
// the loop for any strides.
using PairPatterns = std::integer_sequence<unsigned, 0b000, 0b001, 0b010, 0b100, 0b101, 0b110>;

template <class First, class Second>
void pair_row(const void*, char* const* ptr, const std::int64_t* strides, std::int64_t n) {
  using F = InTurn<First, Second>;
  unsigned repeated = 0;
  for (unsigned k = 0; k < 3; ++k)
    if (strides[k + 1] == 0) repeated |= 1u << k;
  if (!detail::patterned_row<F, float, float, float, float>(F{}, repeated, ptr, n, PairPatterns{}))
    detail::strided_row<float, float, float, float>(F{}, ptr, strides, n, std::make_index_sequence<3>{});
}

template <class First, class Second>
void run_pair(const KernelCall& call) {
  if (call.n_outputs == kBindLoop) return bind_loop(call, pair_row<First, Second>, InTurn<First, Second>{});
  char* ptr[4] = {call.outputs[0].as<char>()};
  std::int64_t strides[4] = {sizeof(float)};
  for (unsigned k = 0; k < 3; ++k) {
    ptr[k + 1] = call.inputs[k].as<char>();
    strides[k + 1] = call.inputs[k].strides[0] * static_cast<std::int64_t>(sizeof(float));
  }
  pair_row<First, Second>(nullptr, ptr, strides, call.outputs[0].sizes[0]);
}

struct PairRow {
  Kernel first;
  Kernel with_add, with_sub, with_mul, with_maximum, with_minimum;
};

template <class First>
constexpr PairRow pairs_of(Kernel first) {
  return {first,
          run_pair<First, Add>,
          run_pair<First, Sub>,
          run_pair<First, Mul>,
          run_pair<First, Maximum>,
          run_pair<First, Minimum>};
}

constexpr PairRow kPairs[] = {pairs_of<Add>(add), pairs_of<Sub>(sub), pairs_of<Mul>(mul), pairs_of<Maximum>(maximum),
                              pairs_of<Minimum>(minimum)};

}  // namespace

Kernel pair_kernel(Kernel first, Kernel second) {
  for (const PairRow& row : kPairs) {
    if (row.first != first) continue;
    if (second == add) return row.with_add;
    if (second == sub) return row.with_sub;
    if (second == mul) return row.with_mul;
    if (second == maximum) return row.with_maximum;
    if (second == minimum) return row.with_minimum;
  }
  return nullptr;
}

}  // namespace tapedeck::kernels::cpu
