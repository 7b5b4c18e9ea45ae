// One call of attention or of its gradient, as its kernels see it, and the score of a query and a key.
#pragma once

#include <tapedeck/kernels/attrs/attention.h>
#include <tapedeck/kernels/cuda/products/numbers.h>
#include <tapedeck/kernels/cuda/simt.h>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

inline constexpr std::int64_t kLargestSize = 128;  // of rows that lie in tiles

// One call. `pairs` counts the (batch, head) pairs.
struct Attention {
  const void *q, *k, *v, *mask;
  DType dtype;
  bool causal, boolean_mask;
  std::int64_t pairs, heads, t, s, d, e;  // q [pairs,t,d], k [pairs,s,d], v [pairs,s,e]
  double scale;
  std::int64_t mask_strides[4];
};

struct AttentionForward {
  Attention a;
  void* y;
  void* logsumexp;  // f64 where the operands are f64, otherwise f32
};

struct AttentionBackward {
  Attention a;
  const void *y, *logsumexp, *dy, *dlogsumexp;
  DType dtype_of_logsumexp;
  void* inner;  // a number for each query, in the type of the sums; the tensor cores get two
  void *dq, *dk, *dv;
};

inline Attention attention_of(const KernelCall& call, int mask_operand) {
  const View &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  const auto& attrs = call.attributes<AttentionAttrs>();
  Attention a{};
  a.q = q.data;
  a.k = k.data;
  a.v = v.data;
  a.dtype = q.dtype;
  a.causal = attrs.causal;
  a.pairs = q.sizes[0] * q.sizes[1];
  a.heads = q.sizes[1];
  a.t = q.sizes[2];
  a.s = k.sizes[2];
  a.d = q.sizes[3];
  a.e = v.sizes[3];
  a.scale = attrs.scale;
  if (call.n_inputs <= mask_operand) return a;
  const View& mask = call.inputs[mask_operand];
  a.mask = mask.data;
  a.boolean_mask = mask.dtype == DType::boolean;
  for (int i = 0; i < mask.rank; ++i) {
    const int from = mask.rank - 1 - i;
    a.mask_strides[3 - i] = mask.sizes[from] == 1 ? 0 : mask.strides[from];
  }
  return a;
}

// Calls f with the padded number of columns, as a constant.
template <class F>
void for_size(const Attention& a, F&& f) {
  const std::int64_t size = a.d > a.e ? a.d : a.e;
  if (size <= 32) return f(std::integral_constant<int, 32>{});
  if (size <= 64) return f(std::integral_constant<int, 64>{});
  f(std::integral_constant<int, 128>{});
}

template <class Real>
TAPEDECK_DEVICE Real minus_infinity() {
  return -std::numeric_limits<Real>::infinity();
}

TAPEDECK_DEVICE std::int64_t mask_base(const Attention& a, std::int64_t pair) {
  return pair / a.heads * a.mask_strides[0] + pair % a.heads * a.mask_strides[1];
}

// The score of a query and a key from their product: scaled, masked, and -inf where the query does not see the key.
template <class Real>
TAPEDECK_DEVICE Real score_of(const Attention& a, std::int64_t base, std::int64_t row, std::int64_t key, Real product) {
  if (key >= a.s || (a.causal && key > row)) return minus_infinity<Real>();
  Real score = product * static_cast<Real>(a.scale);
  if (!a.mask) return score;
  const std::int64_t at = base + row * a.mask_strides[2] + key * a.mask_strides[3];
  if (a.boolean_mask) return static_cast<const std::uint8_t*>(a.mask)[at] ? score : minus_infinity<Real>();
  return score + load_number<Real>(a.mask, a.dtype, at);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
