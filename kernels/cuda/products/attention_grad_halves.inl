// The gradient of attention of f16 and bf16 on the tensor cores, in three kernels without atomics, as in attention_grad.inl.
// The kernels that sum dq, and dk and dv, are one text: a block keeps rows of two operands and goes through two others.
//
//                  keeps     goes through    scores      products    sums
//      by queries  q, dy     k, v            q k^T       dy v^T      dq += dS k
//      by keys     k, v      q, dy           k q^T       v dy^T      dk += dS^T q, dv += P^T dy
#pragma once

#include <tapedeck/kernels/cuda/products/attention_halves.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace halves {

// The numbers of a query: logsumexp in units of ln 2, or inf if the query sees no key, and sum(y dy) - dlogsumexp.
struct alignas(8) QueryNumbers {
  float logsumexp, inner;
};

// Eight lanes take a query.
TAPEDECK_KERNEL void make_query_numbers(const AttentionBackward b) {
  const Attention& a = b.a;
  const std::int64_t queries = a.pairs * a.t, step = thread_count() / 8;
  const bool packs =
      a.e % 8 == 0 && reinterpret_cast<std::uintptr_t>(b.y) % 16 == 0 && reinterpret_cast<std::uintptr_t>(b.dy) % 16 == 0;
  // The lanes of a warp stay together; lanes without a query take the last one.
  for (std::int64_t at = thread_index() / 8; at - lane_of_warp() / 8 < queries; at += step) {
    const std::int64_t query = at < queries ? at : queries - 1;
    float sum = 0;
    for (std::int64_t c = lane_of_warp() % 8 * 8; c < a.e; c += 64) {
      const std::int64_t place = query * a.e + c;
      float y[8], dy[8];
      if (packs) {
        load_halves(b.y, a.dtype, place, y);
        load_halves(b.dy, a.dtype, place, dy);
      } else {
        for (int i = 0; i < 8; ++i) {
          y[i] = c + i < a.e ? load_number<float>(b.y, a.dtype, place + i) : 0.0f;
          dy[i] = c + i < a.e ? load_number<float>(b.dy, a.dtype, place + i) : 0.0f;
        }
      }
      for (int i = 0; i < 8; ++i) sum = std::fma(y[i], dy[i], sum);
    }
    for (unsigned mask = 4; mask > 0; mask /= 2) sum = sum + shuffle_xor(sum, mask);
    const float logsumexp = load_number<float>(b.logsumexp, b.dtype_of_logsumexp, query);
    const bool none = logsumexp == minus_infinity<float>();
    if (lane_of_warp() % 8 == 0 && at < queries)
      static_cast<QueryNumbers*>(b.inner)[query] = {
          none ? -minus_infinity<float>() : logsumexp * kLog2E,
          none ? 0.0f : sum - load_number<float>(b.dlogsumexp, b.dtype_of_logsumexp, query)};
  }
}

template <int kSize, bool kByKeys>
struct GradShape {
  static constexpr int kRows = 16, kOther = kByKeys && kSize > 64 ? 32 : 64;
  static constexpr int kTile = kOther * pitch_of(kSize);  // of each operand that a block goes through
  static constexpr int kStep = 2 * kTile + (kByKeys ? kOther * 4 : 0);
  static constexpr std::size_t bytes(unsigned warps) {
    return (2 * static_cast<std::size_t>(warps) * kRows * pitch_of(kSize) + 2 * kStep) * sizeof(std::uint16_t);
  }
};

// Reads the numbers of the queries from `first` on; those of queries beyond the end become 0.
TAPEDECK_DEVICE void begin_query_numbers(AsyncCopies& copies, void* to, const QueryNumbers* of_pair, int first, int count,
                                         int t) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const bool inside = first + i < t;
    copies.begin<8>(static_cast<QueryNumbers*>(to) + i, of_pair + (inside ? first + i : 0), inside);
  }
}

// Turns scores, which are to be multiplied by `factor`, into probabilities, and products into the gradients of the scores.
// `numbers` are those of the two queries of the lane, or with kByKeys those of the queries of all columns.
template <bool kByKeys, int kWide>
TAPEDECK_DEVICE void make_gradients(float factor, const QueryNumbers* numbers, SumTile (&weights)[kWide],
                                    SumTile (&gradients)[kWide]) {
  TAPEDECK_UNROLLED
  for (int n = 0; n < kWide; ++n) TAPEDECK_UNROLLED
  for (int j = 0; j < 4; ++j) {
    const QueryNumbers query = kByKeys ? numbers[n * 8 + column_of_sum(j)] : numbers[j / 2];
    const float p = quick_exp2(std::fma(weights[n].at[j], factor, -query.logsumexp));
    weights[n].at[j] = p;
    gradients[n].at[j] = p * (gradients[n].at[j] - query.inner);
  }
}

template <class Half, int kSize, bool kByKeys>
TAPEDECK_KERNEL void TAPEDECK_TWO_SMALL_BLOCKS sum_gradients(const AttentionBackward b) {
  using Shape = GradShape<kSize, kByKeys>;
  constexpr int kOther = Shape::kOther, kPitch = pitch_of(kSize);
  const Attention& a = b.a;
  const std::int64_t own_count = kByKeys ? a.s : a.t, other_count = kByKeys ? a.t : a.s;
  const BlockPlace place(own_count, Shape::kRows, a.causal && !kByKeys);
  const HalfMatrix q(a.q, place.pair, a.t, a.d), dy(b.dy, place.pair, a.t, a.e);
  const HalfMatrix k(a.k, place.pair, a.s, a.d), v(a.v, place.pair, a.s, a.e);
  const HalfMatrix &first_other = kByKeys ? q : k, &second_other = kByKeys ? dy : v;
  const QueryNumbers* const of_pair = static_cast<const QueryNumbers*>(b.inner) + place.pair * a.t;
  std::uint16_t* const own = dynamic_shared<std::uint16_t>();
  std::uint16_t* const tiles = own + 2 * place.rows * kPitch;
  const int begin = kByKeys && a.causal ? place.first / kOther * kOther : 0;
  const int end =
      !kByKeys && a.causal && place.first + place.rows < a.s ? place.first + place.rows : static_cast<int>(other_count);

  AsyncCopies copies;
  const auto read_step = [&](int at, std::uint16_t* to) {
    begin_tile<kSize>(copies, to, first_other, at, kOther);
    begin_tile<kSize>(copies, to + Shape::kTile, second_other, at, kOther);
    if constexpr (kByKeys) begin_query_numbers(copies, to + 2 * Shape::kTile, of_pair, at, kOther, static_cast<int>(a.t));
  };
  begin_tile<kSize>(copies, own, kByKeys ? k : q, place.first, place.rows);
  begin_tile<kSize>(copies, own + place.rows * kPitch, kByKeys ? v : dy, place.first, place.rows);
  read_step(begin, tiles);

  const std::uint16_t* const of_warp = own + static_cast<int>(warp_of_block()) * Shape::kRows * kPitch + quarters_down(kPitch);
  const KeptRows<kSize, 1> first_own{of_warp}, second_own{of_warp + place.rows * kPitch};
  const Scores<Half, kByKeys> scores(a, place.pair);
  QueryNumbers of_rows[2] = {};
  if constexpr (!kByKeys)
    for (int h = 0; h < 2; ++h)
      if (const int query = place.first_of_warp + row_of_sum(2 * h); query < a.t) of_rows[h] = of_pair[query];
  SumTile first_sums[1][kSize / 8] = {}, second_sums[1][kSize / 8] = {};  // dq; or dk and dv
  for (int at = begin, step = 0; at < end; at += kOther, step ^= 1) {
    const std::uint16_t* const now = tiles + step * Shape::kStep;
    copies.wait();
    sync_block();
    if (at + kOther < end) read_step(at + kOther, tiles + (step ^ 1) * Shape::kStep);
    // The warp's queries see none of these keys.
    if (a.causal && (kByKeys ? at + kOther <= place.first_of_warp : at >= place.first_of_warp + Shape::kRows)) continue;
    SumTile weights[1][kOther / 8], gradients[1][kOther / 8];
    multiply_by_rows<Half, kSize, 1, kOther>(first_own, now, weights);
    multiply_by_rows<Half, kSize, 1, kOther>(second_own, now + Shape::kTile, gradients);
    const QueryNumbers* numbers = of_rows;
    if constexpr (kByKeys) numbers = reinterpret_cast<const QueryNumbers*>(now + 2 * Shape::kTile);
    const float factor = scores.finish(place.first_of_warp, at, weights[0]);
    make_gradients<kByKeys>(factor, numbers, weights[0], gradients[0]);
    if constexpr (kByKeys) add_weighted_rows<Half, kSize, 1, kOther>(weights, now + Shape::kTile, second_sums);
    add_weighted_rows<Half, kSize, 1, kOther>(gradients, now, first_sums);
  }
  const float scale = static_cast<float>(a.scale);
  write_rows<Half, kSize>(kByKeys ? b.dk : b.dq, place.pair, own_count, a.d, place.first_of_warp, first_sums[0],
                          {scale, scale});
  if constexpr (kByKeys)
    write_rows<Half, kSize>(b.dv, place.pair, own_count, a.e, place.first_of_warp, second_sums[0], {1.0f, 1.0f});
}

template <class Half, bool kByKeys>
void launch_sums(const KernelCall& call, const AttentionBackward& b) {
  for_size(b.a, [&](auto size) {
    using Shape = GradShape<size(), kByKeys>;
    const std::int64_t rows = kByKeys ? b.a.s : b.a.t;
    const unsigned warps = warps_of_block_for(b.a.pairs, rows, Shape::kRows);
    launch(call, &sum_gradients<Half, size(), kByKeys>, launch_of(b.a.pairs, rows, warps, Shape::kRows, Shape::bytes(warps)),
           b);
  });
}

template <class Half>
void launch_gradients(const KernelCall& call, const AttentionBackward& b) {
  launch(call, &make_query_numbers, for_items(b.a.pairs * b.a.t * 8), b);
  launch_sums<Half, false>(call, b);
  launch_sums<Half, true>(call, b);
}

inline std::int64_t workspace_of_gradients(std::int64_t queries) {
  return queries * static_cast<std::int64_t>(sizeof(QueryNumbers));
}

}  // namespace halves
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
