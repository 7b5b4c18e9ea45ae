// The gradient of attention, in three kernels without atomics. The first one makes for each query the number sum(y dy) -
// dlogsumexp. Then blocks that keep 64 or 32 queries sum dq over the keys, and blocks that keep as many keys sum dk and dv over
// the queries. Both compute the probabilities P again from the saved logsumexp:
//
//       dS = P (dy v^T - inner)      dq = scale dS k      dk = scale dS^T q      dv = P^T dy
#include <tapedeck/kernels/cuda/products/attention_tiles.h>
#include <tapedeck/kernels/cuda/products/attention_grad_halves.inl>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// ---- a number for each query ----

// A warp takes a query.
template <class Real>
TAPEDECK_KERNEL void make_inner(const AttentionBackward b) {
  const Attention& a = b.a;
  const std::int64_t queries = a.pairs * a.t, warps = thread_count() / kWarp;
  for (std::int64_t query = thread_index() / kWarp; query < queries; query += warps) {
    Real sum = 0;
    for (std::int64_t c = lane_of_warp(); c < a.e; c += kWarp)
      sum = std::fma(load_number<Real>(b.y, a.dtype, query * a.e + c), load_number<Real>(b.dy, a.dtype, query * a.e + c), sum);
    for (unsigned step = kWarp / 2; step > 0; step /= 2) sum = sum + shuffle_xor(sum, step);
    if (lane_of_warp() == 0)
      static_cast<Real*>(b.inner)[query] = sum - load_number<Real>(b.dlogsumexp, b.dtype_of_logsumexp, query);
  }
}

// ---- probabilities ----

// The numbers of a query that the backward kernels read.
template <class Real>
struct QueryFacts {
  Real logsumexp, inner;

  TAPEDECK_DEVICE QueryFacts(const AttentionBackward& b, std::int64_t query)
      : logsumexp(load_number<Real>(b.logsumexp, b.dtype_of_logsumexp, query)),
        inner(static_cast<const Real*>(b.inner)[query]) {}
  // The probability of a key with this score. A query that sees no key has none.
  TAPEDECK_DEVICE Real probability(Real score) const {
    return logsumexp == minus_infinity<Real>() ? Real(0) : exp_of(score - logsumexp);
  }
};

// The gradient of a score, from the product of the query's dy with the key's v.
template <class Real>
TAPEDECK_DEVICE Real score_gradient(const QueryFacts<Real>& query, Real probability, Real product) {
  return query.logsumexp == minus_infinity<Real>() ? Real(0) : probability * (product - query.inner);
}

// ---- dq ----

template <int kSize, int kRows>
struct QueryGradTiles {
  static constexpr int kKeys = other_rows(kSize), kDown = kRows / kAcross, kWide = kKeys / kAcross;
  static constexpr int kOwn = kRows * pitch_of(kSize), kOther = kKeys * pitch_of(kSize);
  static constexpr std::size_t kBytes = (2 * kOwn + 2 * kOther + kRows * pitch_of(kKeys)) * sizeof(float);
};

template <int kSize, int kRows>
TAPEDECK_KERNEL void TAPEDECK_TWO_BLOCKS sum_dq(const AttentionBackward b) {
  using Tiles = QueryGradTiles<kSize, kRows>;
  constexpr int kKeys = Tiles::kKeys, kDown = Tiles::kDown, kWide = Tiles::kWide, kPitch = pitch_of(kKeys);
  float* const q = dynamic_shared<float>();
  float *const dy = q + Tiles::kOwn, *const k = dy + Tiles::kOwn, *const v = k + Tiles::kOther;
  float* const gradients = v + Tiles::kOther;
  const Attention& a = b.a;
  const int t = static_cast<int>(a.t), s = static_cast<int>(a.s), row_tiles = (t + kRows - 1) / kRows;
  const std::int64_t pair = blockIdx.x / static_cast<unsigned>(row_tiles);
  const int row = static_cast<int>(blockIdx.x % static_cast<unsigned>(row_tiles)) * kRows;
  const int first = static_cast<int>(threadIdx.x) / kAcross * kDown, across = static_cast<int>(threadIdx.x) % kAcross;
  const std::int64_t base = mask_base(a, pair);
  const int keys = a.causal && row + kRows < s ? row + kRows : s;

  float sums[kDown][Columns<kSize>::kCount] = {};
  read_tile<kRows, kSize>(q, a.q, pair, a.t, row, a.d);
  read_tile<kRows, kSize>(dy, b.dy, pair, a.t, row, a.e);
  for (int key = 0; key < keys; key += kKeys) {
    read_tile<kKeys, kSize>(k, a.k, pair, a.s, key, a.d);
    read_tile<kKeys, kSize>(v, a.v, pair, a.s, key, a.e);
    sync_block();
    float scores[kDown][kWide], products[kDown][kWide];
    multiply_rows<kSize>(q, k, first, across, scores);
    multiply_rows<kSize>(dy, v, first, across, products);
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDown; ++i) {
      const int query = row + first + i < t ? row + first + i : t - 1;  // rows beyond the end repeat the last
      const QueryFacts<float> facts(b, pair * a.t + query);
      TAPEDECK_UNROLLED
      for (int j = 0; j < kWide; ++j) {
        const float p = facts.probability(score_of(a, base, query, key + across + j * kAcross, scores[i][j]));
        gradients[(first + i) * kPitch + across + j * kAcross] = score_gradient(facts, p, products[i][j]);
      }
    }
    sync_block();
    add_weighted_rows<kSize, kKeys>(gradients, k, first, across, sums);
    sync_block();
  }
  const float scale = static_cast<float>(a.scale);
  TAPEDECK_UNROLLED
  for (int i = 0; i < kDown; ++i) {
    TAPEDECK_UNROLLED
    for (int j = 0; j < Columns<kSize>::kCount; ++j) sums[i][j] = sums[i][j] * scale;
  }
  write_rows<kSize>(b.dq, pair, a.t, a.d, row + first, across, sums);
}

// ---- dk and dv ----

template <int kSize, int kRows>
struct KeyGradTiles {
  static constexpr int kQueries = other_rows(kSize), kDown = kQueries / kAcross, kWide = kRows / kAcross;
  static constexpr int kOwn = kRows * pitch_of(kSize), kOther = kQueries * pitch_of(kSize);
  static constexpr int kScores = kQueries * pitch_of(kRows);
  static constexpr std::size_t kBytes = (2 * kOwn + 2 * kOther + 2 * kScores) * sizeof(float);
};

template <int kSize, int kRows>
TAPEDECK_KERNEL void TAPEDECK_TWO_BLOCKS sum_dk_dv(const AttentionBackward b) {
  using Tiles = KeyGradTiles<kSize, kRows>;
  constexpr int kQueries = Tiles::kQueries, kDown = Tiles::kDown, kWide = Tiles::kWide, kPitch = pitch_of(kRows);
  float* const k = dynamic_shared<float>();
  float *const v = k + Tiles::kOwn, *const q = v + Tiles::kOwn, *const dy = q + Tiles::kOther;
  float *const probabilities = dy + Tiles::kOther, *const gradients = probabilities + Tiles::kScores;
  const Attention& a = b.a;
  const int t = static_cast<int>(a.t), s = static_cast<int>(a.s), key_tiles = (s + kRows - 1) / kRows;
  const std::int64_t pair = blockIdx.x / static_cast<unsigned>(key_tiles);
  const int key = static_cast<int>(blockIdx.x % static_cast<unsigned>(key_tiles)) * kRows;
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  const std::int64_t base = mask_base(a, pair);

  float dk[kWide][Columns<kSize>::kCount] = {}, dv[kWide][Columns<kSize>::kCount] = {};
  read_tile<kRows, kSize>(k, a.k, pair, a.s, key, a.d);
  read_tile<kRows, kSize>(v, a.v, pair, a.s, key, a.e);
  for (int row = a.causal ? key / kQueries * kQueries : 0; row < t; row += kQueries) {
    read_tile<kQueries, kSize>(q, a.q, pair, a.t, row, a.d);
    read_tile<kQueries, kSize>(dy, b.dy, pair, a.t, row, a.e);
    sync_block();
    float scores[kDown][kWide], products[kDown][kWide];
    multiply_rows<kSize>(q, k, down * kDown, across, scores);
    multiply_rows<kSize>(dy, v, down * kDown, across, products);
    TAPEDECK_UNROLLED
    for (int i = 0; i < kDown; ++i) {
      const int of_tile = down * kDown + i, query = row + of_tile;
      const QueryFacts<float> facts(b, pair * a.t + (query < t ? query : t - 1));
      TAPEDECK_UNROLLED
      for (int j = 0; j < kWide; ++j) {
        const int column = across + j * kAcross;
        const float p = query < t ? facts.probability(score_of(a, base, query, key + column, scores[i][j])) : 0.0f;
        probabilities[of_tile * kPitch + column] = p;
        gradients[of_tile * kPitch + column] = query < t ? score_gradient(facts, p, products[i][j]) : 0.0f;
      }
    }
    sync_block();
    TAPEDECK_UNROLLED_BY_2
    for (int i = 0; i < kQueries; ++i) {
      const int place = i * kPitch + down * kWide;
      const auto p = *reinterpret_cast<const Group<kWide>*>(probabilities + place);
      const auto g = *reinterpret_cast<const Group<kWide>*>(gradients + place);
      add_row<kSize>(dy + i * pitch_of(kSize), across, p.at, dv);
      add_row<kSize>(q + i * pitch_of(kSize), across, g.at, dk);
    }
    sync_block();
  }
  const float scale = static_cast<float>(a.scale);
  TAPEDECK_UNROLLED
  for (int i = 0; i < kWide; ++i) {
    TAPEDECK_UNROLLED
    for (int j = 0; j < Columns<kSize>::kCount; ++j) dk[i][j] = dk[i][j] * scale;
  }
  write_rows<kSize>(b.dk, pair, a.s, a.d, key + down * kWide, across, dk);
  write_rows<kSize>(b.dv, pair, a.s, a.e, key + down * kWide, across, dv);
}

// ---- the plain kernels ----

// The probability and the gradient of the score of one query and key.
template <class Real>
struct ScorePair {
  Real probability, gradient;
};

template <class Real>
TAPEDECK_DEVICE ScorePair<Real> score_pair(const AttentionBackward& b, std::int64_t pair, std::int64_t row, std::int64_t key) {
  const Attention& a = b.a;
  const std::int64_t query = pair * a.t + row, at = pair * a.s + key;
  const QueryFacts<Real> facts(b, query);
  const Real product = row_product<Real>(a.dtype, a.q, query * a.d, a.k, at * a.d, a.d);
  const Real p = facts.probability(score_of(a, mask_base(a, pair), row, key, product));
  return {p, score_gradient(facts, p, row_product<Real>(a.dtype, b.dy, query * a.e, a.v, at * a.e, a.e))};
}

// One query for each block, and up to kColumns columns of dq.
template <class Real>
TAPEDECK_KERNEL void sum_dq_plainly(const AttentionBackward b) {
  TAPEDECK_SHARED Real gradients[kPlain], sums[kColumns];
  const Attention& a = b.a;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kColumns;
  const int columns = static_cast<int>(a.d - column < kColumns ? a.d - column : kColumns);
  for (std::int64_t query = blockIdx.x; query < a.pairs * a.t; query += gridDim.x) {
    const std::int64_t pair = query / a.t, row = query % a.t;
    const std::int64_t keys = a.causal && row + 1 < a.s ? row + 1 : a.s;
    for (int c = thread; c < columns; c += kPlain) sums[c] = 0;
    for (std::int64_t key = 0; key < keys; key += kPlain) {
      gradients[thread] = key + thread < keys ? score_pair<Real>(b, pair, row, key + thread).gradient : Real(0);
      sync_block();
      const int count = static_cast<int>(keys - key < kPlain ? keys - key : kPlain);
      for (int c = thread; c < columns; c += kPlain)
        for (int j = 0; j < count; ++j)
          sums[c] = std::fma(gradients[j], load_number<Real>(a.k, a.dtype, (pair * a.s + key + j) * a.d + column + c), sums[c]);
      sync_block();
    }
    for (int c = thread; c < columns; c += kPlain)
      store_number(b.dq, a.dtype, query * a.d + column + c, sums[c] * static_cast<Real>(a.scale));
  }
}

// One key for each block, and up to kColumns columns of dk and of dv.
template <class Real>
TAPEDECK_KERNEL void sum_dk_dv_plainly(const AttentionBackward b) {
  TAPEDECK_SHARED Real probabilities[kPlain], gradients[kPlain], dk[kColumns], dv[kColumns];
  const Attention& a = b.a;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kColumns;
  for (std::int64_t at = blockIdx.x; at < a.pairs * a.s; at += gridDim.x) {
    const std::int64_t pair = at / a.s, key = at % a.s;
    for (int c = thread; c < kColumns; c += kPlain) dk[c] = dv[c] = 0;
    for (std::int64_t row = a.causal ? key : 0; row < a.t; row += kPlain) {
      const int count = static_cast<int>(a.t - row < kPlain ? a.t - row : kPlain);
      const ScorePair<Real> own = thread < count ? score_pair<Real>(b, pair, row + thread, key) : ScorePair<Real>{};
      probabilities[thread] = own.probability;
      gradients[thread] = own.gradient;
      sync_block();
      for (int c = thread; c < kColumns; c += kPlain)
        for (int i = 0; i < count; ++i) {
          const std::int64_t query = pair * a.t + row + i;
          if (column + c < a.d)
            dk[c] = std::fma(gradients[i], load_number<Real>(a.q, a.dtype, query * a.d + column + c), dk[c]);
          if (column + c < a.e)
            dv[c] = std::fma(probabilities[i], load_number<Real>(b.dy, a.dtype, query * a.e + column + c), dv[c]);
        }
      sync_block();
    }
    for (int c = thread; c < kColumns; c += kPlain) {
      if (column + c < a.d) store_number(b.dk, a.dtype, at * a.d + column + c, dk[c] * static_cast<Real>(a.scale));
      if (column + c < a.e) store_number(b.dv, a.dtype, at * a.e + column + c, dv[c]);
    }
  }
}

// ---- host ----

inline AttentionBackward backward_of(const KernelCall& call) {
  const View* in = call.inputs;
  return {attention_of(call, 7), in[3].data,     in[4].data,           in[5].data,           in[6].data,
          in[4].dtype,           call.workspace, call.outputs[0].data, call.outputs[1].data, call.outputs[2].data};
}

template <class Real>
void launch_plain_gradients(const KernelCall& call, const AttentionBackward& b) {
  const Attention& a = b.a;
  launch(call, &sum_dq_plainly<Real>, plain_launch(a.pairs * a.t, a.d), b);
  launch(call, &sum_dk_dv_plainly<Real>, plain_launch(a.pairs * a.s, a.d > a.e ? a.d : a.e), b);
}

inline void launch_gradient_tiles(const KernelCall& call, const AttentionBackward& b) {
  for_tiles(b.a, b.a.t, [&](auto size, auto rows) {
    launch(call, &sum_dq<size(), rows()>, launch_of_tiles(b.a, b.a.t, rows, QueryGradTiles<size(), rows()>::kBytes), b);
  });
  for_tiles(b.a, b.a.s, [&](auto size, auto rows) {
    launch(call, &sum_dk_dv<size(), rows()>, launch_of_tiles(b.a, b.a.s, rows, KeyGradTiles<size(), rows()>::kBytes), b);
  });
}

void scaled_dot_product_attention_grad(const KernelCall& call) {
  const AttentionBackward b = backward_of(call);
  const std::int64_t queries = b.a.pairs * b.a.t;
  if (b.a.dtype == DType::f64) {
    launch(call, &make_inner<double>, for_items(queries * kWarp), b);
    return launch_plain_gradients<double>(call, b);
  }
  if (fits_tiles(b.a) && b.a.dtype == DType::f16) return halves::launch_gradients<F16>(call, b);
  if (fits_tiles(b.a) && b.a.dtype == DType::bf16) return halves::launch_gradients<Bf16>(call, b);
  launch(call, &make_inner<float>, for_items(queries * kWarp), b);
  return fits_tiles(b.a) ? launch_gradient_tiles(call, b) : launch_plain_gradients<float>(call, b);
}

std::int64_t scaled_dot_product_attention_grad_workspace(const KernelCall& call) {
  const View& q = call.inputs[0];
  const std::int64_t queries = q.sizes[0] * q.sizes[1] * q.sizes[2];
  return is_half(q.dtype) ? halves::workspace_of_gradients(queries) : queries * (q.dtype == DType::f64 ? 8 : 4);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
