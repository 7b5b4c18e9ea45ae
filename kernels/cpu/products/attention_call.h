// The parts that attention of f32 and f64 (attention.cpp) shares with attention of halves (attention_half.cpp): the sizes of
// a call, its blocks of scores, the mask of a block, and the sums of exponentials of a query.
#pragma once

#include <tapedeck/kernels/attrs/attention.h>
#include <tapedeck/kernels/cpu/products/half_rows.h>
#include <tapedeck/kernels/cpu/row_sums.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tapedeck::kernels::cpu {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

inline constexpr std::int64_t kManyPairs = 8;  // with this many (batch, head) pairs or more, backward makes each pair one task

// The sizes and the mask of one call, and the place of each (batch, head) pair's matrices. Scores are computed in blocks of
// `rows` queries and `cols` keys.
struct AttentionCall {
  std::int64_t rows, cols, pairs, heads, t, s, d, dv;
  double scale;
  bool causal;
  const View* mask;  // null if the call has no mask
  std::int64_t mask_strides[4] = {};

  AttentionCall(const KernelCall& call, int mask_operand, std::int64_t block_rows, std::int64_t block_cols)
      : rows(block_rows),
        cols(block_cols),
        pairs(call.inputs[0].sizes[0] * call.inputs[0].sizes[1]),
        heads(call.inputs[0].sizes[1]),
        t(call.inputs[0].sizes[2]),
        s(call.inputs[1].sizes[2]),
        d(call.inputs[0].sizes[3]),
        dv(call.inputs[2].sizes[3]),
        scale(call.attributes<AttentionAttrs>().scale),
        causal(call.attributes<AttentionAttrs>().causal),
        mask(call.n_inputs > mask_operand ? &call.inputs[mask_operand] : nullptr) {
    for (int i = 0; mask && i < mask->rank; ++i) {
      const int from = mask->rank - 1 - i;
      mask_strides[3 - i] = mask->sizes[from] == 1 ? 0 : mask->strides[from];
    }
  }
  std::int64_t row_blocks() const { return (t + rows - 1) / rows; }
  std::int64_t col_blocks() const { return (s + cols - 1) / cols; }
  // True if some query among the rows up to `last_row` sees a key at `col` or later.
  bool visible(std::int64_t last_row, std::int64_t col) const { return !causal || col <= last_row; }
  double ns_per_block() const {
    return static_cast<double>(std::min(t, rows) * std::min(s, cols)) * (0.02 * static_cast<double>(d + dv) + 0.5);
  }
};

// One block of scores: the queries [row, row + m) and the keys [col, col + n) of one pair.
struct ScoreBlock {
  std::int64_t pair, row, m, col, n;
};

inline ScoreBlock score_block_at(const AttentionCall& p, std::int64_t pair, std::int64_t row_block, std::int64_t col_block) {
  const std::int64_t row = row_block * p.rows, col = col_block * p.cols;
  return {pair, row, std::min(p.rows, p.t - row), col, std::min(p.cols, p.s - col)};
}

// Applies the mask to a block of scores, whose rows lie p.cols elements apart.
template <class T>
void mask_scores(const AttentionCall& p, const ScoreBlock& w, T* scores) {
  if (p.mask) {
    const std::int64_t* strides = p.mask_strides;
    const std::int64_t base =
        w.pair / p.heads * strides[0] + w.pair % p.heads * strides[1] + w.row * strides[2] + w.col * strides[3];
    for (std::int64_t i = 0; i < w.m; ++i)
      for (std::int64_t j = 0; j < w.n; ++j) {
        const std::int64_t at = base + i * strides[2] + j * strides[3];
        T& score = scores[i * p.cols + j];
        if (p.mask->dtype == DType::boolean)
          score = p.mask->as<std::uint8_t>()[at] ? score : -kInfinity<T>;
        else
          score += number_at<T>(*p.mask, at);
      }
  }
  if (p.causal)
    for (std::int64_t i = 0; i < w.m; ++i)
      for (std::int64_t j = std::max<std::int64_t>(0, w.row + i + 1 - w.col); j < w.n; ++j)
        scores[i * p.cols + j] = -kInfinity<T>;
}

template <class T>
void exp_row(T* row, std::int64_t n, T shift) {
  TAPEDECK_INDEPENDENT
  for (std::int64_t j = 0; j < n; ++j) row[j] = exp_of(row[j] - shift);
}

// Adds one row of scores to a query. The scores become exponentials relative to the largest score so far, and the query's
// result so far is rescaled to it.
template <class T>
void absorb_row(T* scores, std::int64_t n, T* y, std::int64_t dv, T* top, T* total) {
  const T before = *top, now = Maximum{}(before, row_max(scores, n, 1));
  *top = now;
  if (now == -kInfinity<T>) {  // the query has seen no key yet
    std::fill_n(scores, n, T(0));
    return;
  }
  const T keep = before == -kInfinity<T> ? T(0) : exp_of(before - now);
  exp_row(scores, n, now);
  *total = *total * keep + row_sum<T>(n, [&](std::int64_t j) { return scores[j]; });
  for (std::int64_t c = 0; c < dv; ++c) y[c] *= keep;
}

template <class T>
void finish_row(T* y, std::int64_t dv, T top, T total, T* logsumexp) {
  if (top == -kInfinity<T>) {
    std::fill_n(y, dv, T(0));
    *logsumexp = top;
    return;
  }
  const T scale = T(1) / total;
  for (std::int64_t c = 0; c < dv; ++c) y[c] *= scale;
  *logsumexp = top + log_of(total);
}

}  // namespace tapedeck::kernels::cpu
