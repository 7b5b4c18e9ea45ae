// Attention that never stores the matrix of scores (Dao et al., "FlashAttention", 2022). A block keeps 64 or 32 queries and
// goes through the keys tile by tile. For each query it keeps the largest score so far, the sum of exponentials relative to it,
// and the result so far; a larger score rescales them.
#include <tapedeck/kernels/cuda/products/attention_tiles.h>
#include <tapedeck/kernels/cuda/products/attention_halves.inl>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

template <int kSize, int kRows>
struct ForwardTiles {
  static constexpr int kKeys = other_rows(kSize), kDown = kRows / kAcross, kWide = kKeys / kAcross;
  static constexpr int kOwn = kRows * pitch_of(kSize), kOther = kKeys * pitch_of(kSize);
  static constexpr std::size_t kBytes = (kOwn + 2 * kOther + kRows * pitch_of(kKeys)) * sizeof(float);
};

// The running softmax of a thread's queries.
template <int kDown>
struct RunningSoftmax {
  float top[kDown], total[kDown];

  // Turns the scores of query i into exponentials, and returns the factor that the query's result so far must get.
  template <int kWide>
  TAPEDECK_DEVICE float absorb(int i, float (&scores)[kWide]) {
    float largest = scores[0];
    for (int j = 1; j < kWide; ++j) largest = Maximum{}(largest, scores[j]);
    const float before = top[i], now = Maximum{}(before, row_maximum(largest));
    const bool none = now == minus_infinity<float>();  // the query has seen no key yet
    float sum = 0;
    for (int j = 0; j < kWide; ++j) {
      scores[j] = none ? 0.0f : exp_of(scores[j] - now);
      sum = sum + scores[j];
    }
    const float keep = before == minus_infinity<float>() ? 0.0f : exp_of(before - now);
    total[i] = total[i] * keep + row_total(sum);
    top[i] = now;
    return keep;
  }
};

template <int kSize, int kRows>
TAPEDECK_KERNEL void TAPEDECK_TWO_BLOCKS attend_tiles(const AttentionForward f) {
  using Tiles = ForwardTiles<kSize, kRows>;
  constexpr int kKeys = Tiles::kKeys, kDown = Tiles::kDown, kWide = Tiles::kWide, kPitch = pitch_of(kKeys);
  float* const q = dynamic_shared<float>();
  float *const k = q + Tiles::kOwn, *const v = k + Tiles::kOther, *const weights = v + Tiles::kOther;
  const Attention& a = f.a;
  const int t = static_cast<int>(a.t), s = static_cast<int>(a.s), row_tiles = (t + kRows - 1) / kRows;
  const std::int64_t pair = blockIdx.x / static_cast<unsigned>(row_tiles);
  const int row = static_cast<int>(blockIdx.x % static_cast<unsigned>(row_tiles)) * kRows;
  const int first = static_cast<int>(threadIdx.x) / kAcross * kDown, across = static_cast<int>(threadIdx.x) % kAcross;
  const std::int64_t base = mask_base(a, pair);
  const int keys = a.causal && row + kRows < s ? row + kRows : s;  // that some query of the tile may see

  float sums[kDown][Columns<kSize>::kCount] = {};
  RunningSoftmax<kDown> softmax;
  for (int i = 0; i < kDown; ++i) {
    softmax.top[i] = minus_infinity<float>();
    softmax.total[i] = 0;
  }
  read_tile<kRows, kSize>(q, a.q, pair, a.t, row, a.d);
  for (int key = 0; key < keys; key += kKeys) {
    read_tile<kKeys, kSize>(k, a.k, pair, a.s, key, a.d);
    read_tile<kKeys, kSize>(v, a.v, pair, a.s, key, a.e);
    sync_block();
    float scores[kDown][kWide];
    multiply_rows<kSize>(q, k, first, across, scores);
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDown; ++i) {
      TAPEDECK_UNROLLED
      for (int j = 0; j < kWide; ++j) {
        const int query = row + first + i < t ? row + first + i : t - 1;  // rows beyond the end repeat the last
        scores[i][j] = score_of(a, base, query, key + across + j * kAcross, scores[i][j]);
      }
      const float keep = softmax.absorb(i, scores[i]);
      TAPEDECK_UNROLLED
      for (int j = 0; j < Columns<kSize>::kCount; ++j) sums[i][j] = sums[i][j] * keep;
      TAPEDECK_UNROLLED
      for (int j = 0; j < kWide; ++j) weights[(first + i) * kPitch + across + j * kAcross] = scores[i][j];
    }
    sync_block();
    add_weighted_rows<kSize, kKeys>(weights, v, first, across, sums);
    sync_block();
  }
  TAPEDECK_UNROLLED
  for (int i = 0; i < kDown; ++i) {
    const bool none = softmax.top[i] == minus_infinity<float>();
    const float scale = none ? 0.0f : 1.0f / softmax.total[i];
    TAPEDECK_UNROLLED
    for (int j = 0; j < Columns<kSize>::kCount; ++j) sums[i][j] = sums[i][j] * scale;
    if (across == 0 && row + first + i < t)
      static_cast<float*>(f.logsumexp)[pair * a.t + row + first + i] =
          none ? softmax.top[i] : softmax.top[i] + log_of(softmax.total[i]);
  }
  write_rows<kSize>(f.y, pair, a.t, a.e, row + first, across, sums);
}

// One query for each block, and up to kColumns columns of its result.
template <class Real>
TAPEDECK_KERNEL void attend_plainly(const AttentionForward f) {
  TAPEDECK_SHARED Real weights[kPlain], sums[kColumns], scratch[kPlain / kWarp];
  const Attention& a = f.a;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kColumns;
  const int columns = static_cast<int>(a.e - column < kColumns ? a.e - column : kColumns);
  for (std::int64_t query = blockIdx.x; query < a.pairs * a.t; query += gridDim.x) {
    const std::int64_t pair = query / a.t, row = query % a.t, base = mask_base(a, pair);
    const std::int64_t keys = a.causal && row + 1 < a.s ? row + 1 : a.s;
    Real top = minus_infinity<Real>(), total = 0;
    for (int c = thread; c < columns; c += kPlain) sums[c] = 0;
    for (std::int64_t key = 0; key < keys; key += kPlain) {
      Real score = minus_infinity<Real>();
      if (key + thread < keys)
        score = score_of(a, base, row, key + thread,
                         row_product<Real>(a.dtype, a.q, query * a.d, a.k, (pair * a.s + key + thread) * a.d, a.d));
      const Real before = top;
      top = Maximum{}(before, combine_block(score, scratch, Maximum{}));
      const bool none = top == minus_infinity<Real>();
      const Real weight = none ? Real(0) : exp_of(score - top);
      const Real keep = before == minus_infinity<Real>() ? Real(0) : exp_of(before - top);
      weights[thread] = weight;
      total = total * keep + combine_block(weight, scratch, Add{});
      const int count = static_cast<int>(keys - key < kPlain ? keys - key : kPlain);
      for (int c = thread; c < columns; c += kPlain) {
        Real sum = sums[c] * keep;
        for (int j = 0; j < count; ++j)
          sum = std::fma(weights[j], load_number<Real>(a.v, a.dtype, (pair * a.s + key + j) * a.e + column + c), sum);
        sums[c] = sum;
      }
      sync_block();
    }
    const bool none = top == minus_infinity<Real>();
    for (int c = thread; c < columns; c += kPlain)
      store_number(f.y, a.dtype, query * a.e + column + c, none ? Real(0) : sums[c] * (Real(1) / total));
    if (thread == 0 && blockIdx.y == 0) static_cast<Real*>(f.logsumexp)[query] = none ? top : top + log_of(total);
  }
}

void scaled_dot_product_attention(const KernelCall& call) {
  const AttentionForward f{attention_of(call, 3), call.outputs[0].data, call.outputs[1].data};
  if (f.a.pairs * f.a.t == 0) return;
  if (f.a.dtype == DType::f64) return launch(call, &attend_plainly<double>, plain_launch(f.a.pairs * f.a.t, f.a.e), f);
  if (!fits_tiles(f.a)) return launch(call, &attend_plainly<float>, plain_launch(f.a.pairs * f.a.t, f.a.e), f);
  if (f.a.dtype == DType::f16) return halves::launch_forward<F16>(call, f);
  if (f.a.dtype == DType::bf16) return halves::launch_forward<Bf16>(call, f);
  for_tiles(f.a, f.a.t, [&](auto size, auto rows) {
    launch(call, &attend_tiles<size(), rows()>, launch_of_tiles(f.a, f.a.t, rows, ForwardTiles<size(), rows()>::kBytes), f);
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
