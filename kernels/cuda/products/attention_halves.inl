// Attention of f16 and bf16 on the tensor cores. As in attention.inl, a query keeps its largest score so far, the sum of the
// exponentials relative to it, and its result so far. Probabilities are rounded to halves before they weight the values; their
// sum is not.
#pragma once

#include <tapedeck/kernels/cuda/products/attention_halves.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace halves {

template <int kSize>
struct ForwardShape {
  static constexpr int kDeep = kSize > 64 ? 1 : 2;  // tiles of 16 queries that a warp keeps
  static constexpr int kRows = 16 * kDeep, kKeys = 64, kTile = kKeys * pitch_of(kSize);
  static constexpr std::size_t bytes(unsigned warps) {
    return (static_cast<std::size_t>(warps) * kRows * pitch_of(kSize) + 4 * kTile) * sizeof(std::uint16_t);
  }
};

// The running softmax of a warp's queries: [i][h] is query g + 8 h of tile i. The totals are those of the lane's own columns.
template <int kDeep>
struct RunningSoftmax {
  float top[kDeep][2], total[kDeep][2];

  TAPEDECK_DEVICE RunningSoftmax() {
    for (int i = 0; i < kDeep; ++i)
      for (int h = 0; h < 2; ++h) top[i][h] = minus_infinity<float>(), total[i][h] = 0;
  }
  // Turns the scores of a query, which are to be multiplied by `factor`, into exponentials, and multiplies the query's result
  // so far by the number that it needs.
  template <int kWide, int kColumns>
  TAPEDECK_DEVICE void absorb(int i, int h, float factor, SumTile (&scores)[kWide], SumTile (&sums)[kColumns]) {
    float now = minus_infinity<float>();
    TAPEDECK_UNROLLED
    for (int n = 0; n < kWide; ++n) now = std::fmax(now, std::fmax(scores[n].at[2 * h], scores[n].at[2 * h + 1]));
    now = std::fmax(now, shuffle_xor(now, 1));
    now = std::fmax(top[i][h], std::fmax(now, shuffle_xor(now, 2)) * factor);
    const float base = now == minus_infinity<float>() ? 0.0f : now;  // no key was seen yet
    const float keep = quick_exp2(top[i][h] - base);
    float sum = 0;
    TAPEDECK_UNROLLED
    for (int n = 0; n < kWide; ++n) {
      TAPEDECK_UNROLLED
      for (int j = 2 * h; j < 2 * h + 2; ++j) {
        scores[n].at[j] = quick_exp2(std::fma(scores[n].at[j], factor, -base));
        sum = sum + scores[n].at[j];
      }
    }
    total[i][h] = total[i][h] * keep + sum;
    top[i][h] = now;
    TAPEDECK_UNROLLED
    for (int n = 0; n < kColumns; ++n)
      for (int j = 2 * h; j < 2 * h + 2; ++j) sums[n].at[j] = sums[n].at[j] * keep;
  }
  // Adds up the lanes of each query, after the last key.
  TAPEDECK_DEVICE float whole_total(int i, int h) const {
    const float two = total[i][h] + shuffle_xor(total[i][h], 1);
    return two + shuffle_xor(two, 2);
  }
};

template <class Half, int kSize>
TAPEDECK_KERNEL void TAPEDECK_TWO_SMALL_BLOCKS attend(const AttentionForward f) {
  using Shape = ForwardShape<kSize>;
  constexpr int kDeep = Shape::kDeep, kKeys = Shape::kKeys;
  const Attention& a = f.a;
  const BlockPlace place(a.t, Shape::kRows, a.causal);
  const HalfMatrix k(a.k, place.pair, a.s, a.d), v(a.v, place.pair, a.s, a.e);
  std::uint16_t* const q = dynamic_shared<std::uint16_t>();
  std::uint16_t* const tiles = q + place.rows * pitch_of(kSize);  // k and v, and k and v of the next step
  const int keys = a.causal && place.first + place.rows < a.s ? place.first + place.rows : static_cast<int>(a.s);

  AsyncCopies copies;
  begin_tile<kSize>(copies, q, HalfMatrix(a.q, place.pair, a.t, a.d), place.first, place.rows);
  begin_tile<kSize>(copies, tiles, k, 0, kKeys);
  begin_tile<kSize>(copies, tiles + Shape::kTile, v, 0, kKeys);
  copies.wait();
  sync_block();
  HeldRows<kSize, kDeep> queries;
  queries.read({q + static_cast<int>(warp_of_block()) * Shape::kRows * pitch_of(kSize) + quarters_down(pitch_of(kSize))});
  const Scores<Half, false> scores(a, place.pair);
  SumTile sums[kDeep][kSize / 8] = {};
  RunningSoftmax<kDeep> softmax;
  for (int key = 0, step = 0; key < keys; key += kKeys, step ^= 1) {
    const std::uint16_t* const now = tiles + step * 2 * Shape::kTile;
    std::uint16_t* const next = tiles + (step ^ 1) * 2 * Shape::kTile;
    copies.wait();
    sync_block();
    if (key + kKeys < keys) {
      begin_tile<kSize>(copies, next, k, key + kKeys, kKeys);
      begin_tile<kSize>(copies, next + Shape::kTile, v, key + kKeys, kKeys);
    }
    if (a.causal && key >= place.first_of_warp + Shape::kRows) continue;  // the warp sees none of these keys
    SumTile weights[kDeep][kKeys / 8];
    multiply_by_rows<Half, kSize, kDeep, kKeys>(queries, now, weights);
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDeep; ++i) {
      const float factor = scores.finish(place.first_of_warp + i * 16, key, weights[i]);
      TAPEDECK_UNROLLED
      for (int h = 0; h < 2; ++h) softmax.absorb(i, h, factor, weights[i], sums[i]);
    }
    add_weighted_rows<Half, kSize, kDeep, kKeys>(weights, now + Shape::kTile, sums);
  }
  TAPEDECK_UNROLLED
  for (int i = 0; i < kDeep; ++i) {
    const int first = place.first_of_warp + i * 16;
    float factors[2];
    TAPEDECK_UNROLLED
    for (int h = 0; h < 2; ++h) {
      const float total = softmax.whole_total(i, h);
      const bool none = total == 0;  // the query sees no key
      const int query = first + row_of_sum(2 * h);
      factors[h] = none ? 0.0f : 1.0f / total;
      if (lane_of_warp() % 4 == 0 && query < a.t)
        static_cast<float*>(f.logsumexp)[place.pair * a.t + query] =
            none ? minus_infinity<float>() : softmax.top[i][h] * kLn2 + log_of(total);
    }
    write_rows<Half, kSize>(f.y, place.pair, a.t, a.e, first, sums[i], factors);
  }
}

template <class Half>
void launch_forward(const KernelCall& call, const AttentionForward& f) {
  for_size(f.a, [&](auto size) {
    using Shape = ForwardShape<size()>;
    const unsigned warps = warps_of_block_for(f.a.pairs, f.a.t, Shape::kRows);
    launch(call, &attend<Half, size()>, launch_of(f.a.pairs, f.a.t, warps, Shape::kRows, Shape::bytes(warps)), f);
  });
}

}  // namespace halves
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
