// add_n: the sum of many operands, left to right. One launch adds up to kMostTerms operands. The sum of more operands goes
// through several launches, and lies in the workspace between them; a sum of halves stays f32 there.
#pragma once

#include <tapedeck/kernels/cuda/elementwise/families.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline constexpr int kMostTerms = 16;

struct Terms {
  Walk<1 + kMostTerms> walk;
  std::int32_t count;
};

template <class T, int kCount>
TAPEDECK_DEVICE void add_rows(const Terms& terms, const std::int64_t (&at)[1 + kMostTerms]) {
  Value<T> sum[kCount], next[kCount];
  load_row<T>(terms.walk, 1, at[1], sum);
  for (int k = 2; k <= terms.count; ++k) {
    load_row<T>(terms.walk, k, at[k], next);
    for (int i = 0; i < kCount; ++i) sum[i] = Add{}(sum[i], next[i]);
  }
  store_pack<T>(terms.walk.data[0], terms.walk.dtypes[0], at[0], sum);
}

template <class T>
TAPEDECK_DEVICE void add_singly(const Terms& terms, const std::int64_t (&at)[1 + kMostTerms]) {
  Value<T> sum = load<T>(terms.walk.data[1], terms.walk.dtypes[1], at[1]);
  for (int k = 2; k <= terms.count; ++k) sum = Add{}(sum, load<T>(terms.walk.data[k], terms.walk.dtypes[k], at[k]));
  store<T>(terms.walk.data[0], terms.walk.dtypes[0], at[0], sum);
}

template <class T>
inline constexpr int kTermPack = std::is_same_v<T, Real> ? 4 : 1;

template <class T>
TAPEDECK_KERNEL void add_n_kernel(const Terms terms) {
  constexpr int kCount = kTermPack<T>;
  const std::int64_t packs = terms.walk.packs, singles = terms.walk.n - packs * kCount;
  std::int64_t at[1 + kMostTerms];
  for (std::int64_t i = thread_index(); i < packs + singles; i += thread_count()) {
    locate(terms.walk, i < packs ? i * kCount : i + packs * (kCount - 1), at);
    if constexpr (kCount > 1) {
      if (i < packs) {
        add_rows<T, kCount>(terms, at);
        continue;
      }
    }
    add_singly<T>(terms, at);
  }
}

// Adds operands[0 ... count). The walk repeats the last operand in the places that are left, which are never read.
template <class T>
void add_terms(const KernelCall& call, const View& out, const View* const* operands, int count) {
  const View* views[1 + kMostTerms] = {&out};
  for (int k = 0; k < kMostTerms; ++k) views[1 + k] = operands[k < count ? k : count - 1];
  for_parts(make_walk<1 + kMostTerms>(views), [&](const auto& part) {
    Terms terms{part, count};
    if (kTermPack < T >> 1) terms.walk.packs = count_packs(part, kTermPack<T>);
    launch<Terms>(call, &add_n_kernel<T>, for_walk(terms.walk, kTermPack<T>), terms);
  });
}

// The dense sum between two launches: f32 for halves.
inline View sum_in_workspace(const KernelCall& call) {
  View sum = call.outputs[0];
  sum.data = call.workspace;
  if (is_half(sum.dtype)) sum.dtype = DType::f32;
  std::int64_t stride = 1;
  for (int d = sum.rank - 1; d >= 0; stride *= sum.sizes[d--]) sum.strides[d] = stride;
  return sum;
}

std::int64_t add_n_workspace(const KernelCall& call) {
  const View& out = call.outputs[0];
  const std::int64_t width = is_half(out.dtype) ? 4 : static_cast<std::int64_t>(dtype_size(out.dtype));
  return call.n_inputs > kMostTerms ? out.numel() * width : 0;
}

// The result is written by the last launch alone, because it may lie on an operand of any launch.
template <class T>
void add_n_of(const KernelCall& call) {
  const View sum = sum_in_workspace(call);
  const View* terms[kMostTerms];
  int count = 0;
  for (int k = 0; k < call.n_inputs; ++k) {
    terms[count++] = &call.inputs[k];
    const bool last = k + 1 == call.n_inputs;
    if (!last && count < kMostTerms) continue;
    add_terms<T>(call, last ? call.outputs[0] : sum, terms, count);
    terms[0] = &sum;
    count = 1;
  }
}

void add_n(const KernelCall& call) {
  for_all_numbers(call, call.outputs[0].dtype, [&](auto t) { add_n_of<decltype(t)>(call); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
