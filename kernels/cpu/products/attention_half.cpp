// Attention of halves computes blocks of kRows queries by kCols keys, like attention.cpp, with the products of half_products.h.
//
// Backward adds what each block gives to dq, dk and dv in f32, in the workspace. Blocks are added in a fixed order: those of a
// query over ascending keys, those of a key over ascending queries, however the threads share the work. The sums are rounded
// once, at the end.
#include <tapedeck/kernels/cpu/products/attention_half.h>

#include <tapedeck/kernels/checked_math.h>
#include <tapedeck/kernels/cpu/onednn.h>
#include <tapedeck/kernels/cpu/products/attention_call.h>
#include <tapedeck/kernels/parallel.h>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kRows = 64, kCols = 256;
constexpr std::int64_t kValues = 256;  // columns of the result that are summed together

using HalfMatrix = Matrix<const Half>;

// The keys that no query of a block sees are left out of the block.
ScoreBlock half_block_at(const AttentionCall& p, std::int64_t pair, std::int64_t row_block, std::int64_t col_block) {
  ScoreBlock w = score_block_at(p, pair, row_block, col_block);
  if (p.causal) w.n = std::min(w.n, w.row + w.m - w.col);
  return w;
}

HalfMatrix rows_at(const Half* from, std::int64_t first, std::int64_t rows, std::int64_t cols) {
  return {from + first * cols, rows, cols, cols, 1};
}
HalfMatrix turned(const HalfMatrix& a) { return {a.data, a.cols, a.rows, a.col_stride, a.row_stride}; }

// scores = scale q k^T, with the mask applied.
template <class H>
void score_halves(const AttentionCall& p, HalfProducts way, const ScoreBlock& w, const Half* q, const Half* k, float* scores) {
  const HalfMatrix keys = rows_at(k, w.pair * p.s + w.col, w.n, p.d);
  multiply_halves<H>(way, rows_at(q, w.pair * p.t + w.row, w.m, p.d), turned(keys), scores, kCols, false);
  const float scale = static_cast<float>(p.scale);
  for (std::int64_t i = 0; i < w.m; ++i)
    for (std::int64_t j = 0; j < w.n; ++j) scores[i * kCols + j] *= scale;
  mask_scores(p, w, scores);
}

// Adds one row of scores to a query, as absorb_row does, and writes their exponentials as halves.
template <class H>
void absorb_halves(const float* scores, std::int64_t n, float* y, std::int64_t cols, float* top, float* total, Half* shares) {
  const float before = *top, now = Maximum{}(before, row_max(scores, n, 1));
  *top = now;
  if (now == -kInfinity<float>) return static_cast<void>(std::fill_n(shares, n, Half{0}));  // the query has seen no key yet
  const float keep = before == -kInfinity<float> ? 0.0f : exp_of(before - now);
  const float sum = row_exp_sum(
      scores, n, 1, now, [&](std::int64_t at, std::int64_t count, const float* e) { round_row<H>(count, e, shares + at); });
  *total = *total * keep + sum;
  for (std::int64_t c = 0; c < cols; ++c) y[c] *= keep;
}

struct HalfForward {
  const Half *q, *k, *v;
  Half* y;
  float* logsumexp;
};

// Computes the columns [first, first + cols) of the results of a block of queries.
template <class H>
void attend_halves(const AttentionCall& p, HalfProducts way, const HalfForward& f, std::int64_t pair, std::int64_t row_block,
                   std::int64_t first, std::int64_t cols) {
  alignas(64) float scores[kRows * kCols];
  alignas(64) float sums[kRows * kValues];
  alignas(64) Half probabilities[kRows * kCols];
  float top[kRows], total[kRows];
  std::fill_n(sums, kRows * kValues, 0.0f);
  std::fill_n(top, kRows, -kInfinity<float>);
  std::fill_n(total, kRows, 0.0f);
  const ScoreBlock rows = score_block_at(p, pair, row_block, 0);
  for (std::int64_t block = 0; block < p.col_blocks(); ++block) {
    if (!p.visible(rows.row + rows.m - 1, block * kCols)) break;
    const ScoreBlock w = half_block_at(p, pair, row_block, block);
    score_halves<H>(p, way, w, f.q, f.k, scores);
    for (std::int64_t i = 0; i < w.m; ++i)
      absorb_halves<H>(scores + i * kCols, w.n, sums + i * kValues, cols, top + i, total + i, probabilities + i * kCols);
    const HalfMatrix values{f.v + (pair * p.s + w.col) * p.dv + first, w.n, cols, p.dv, 1};
    multiply_halves<H>(way, {probabilities, w.m, w.n, kCols, 1}, values, sums, kValues, true);
  }
  for (std::int64_t i = 0; i < rows.m; ++i) {
    const std::int64_t row = pair * p.t + rows.row + i;
    finish_row(sums + i * kValues, cols, top[i], total[i], f.logsumexp + row);
    round_row<H>(cols, sums + i * kValues, f.y + row * p.dv + first);
  }
}

template <class H>
void attention_of_halves(const KernelCall& call, HalfProducts way) {
  const AttentionCall p(call, 3, kRows, kCols);
  const HalfForward f{call.inputs[0].as<Half>(), call.inputs[1].as<Half>(), call.inputs[2].as<Half>(),
                      call.outputs[0].as<Half>(), call.outputs[1].as<float>()};
  const std::int64_t blocks = p.row_blocks();
  parallel_for(p.pairs * blocks, grain_for(p.ns_per_block() * static_cast<double>(p.col_blocks()) + 10),
               [&](std::int64_t begin, std::int64_t end) {
                 const OneThread one_thread;
                 for (std::int64_t job = begin; job < end; ++job) {
                   std::int64_t first = 0;
                   do {
                     attend_halves<H>(p, way, f, job / blocks, job % blocks, first, std::min(kValues, p.dv - first));
                     first += kValues;
                   } while (first < p.dv);
                 }
               });
}

// ---- backward ----

struct HalfBackward {
  const Half *q, *k, *v, *y, *dy;
  View logsumexp, dlogsumexp;
  std::int64_t d_stride, v_stride;  // of the rows of sums
  float *dq, *dk, *dv;              // sums
  Half *q_out, *k_out, *v_out;

  HalfBackward(const KernelCall& call, const AttentionCall& p)
      : q(call.inputs[0].as<Half>()),
        k(call.inputs[1].as<Half>()),
        v(call.inputs[2].as<Half>()),
        y(call.inputs[3].as<Half>()),
        dy(call.inputs[5].as<Half>()),
        logsumexp(call.inputs[4]),
        dlogsumexp(call.inputs[6]),
        d_stride(padded_columns(p.d)),
        v_stride(padded_columns(p.dv)),
        dq(static_cast<float*>(call.workspace)),
        dk(dq + p.pairs * p.t * d_stride),
        dv(dk + p.pairs * p.s * d_stride),
        q_out(call.outputs[0].as<Half>()),
        k_out(call.outputs[1].as<Half>()),
        v_out(call.outputs[2].as<Half>()) {}
};

// Computes one block of probabilities P, and the gradient of its scores dS = P (dy v^T - sum(dy y) + dlogsumexp), as halves.
template <class H>
void grad_of_scores(const AttentionCall& p, HalfProducts way, const HalfBackward& g, const ScoreBlock& w, Half* probabilities,
                    Half* dscores) {
  alignas(64) float scores[kRows * kCols];
  alignas(64) float products[kRows * kCols];
  const std::int64_t first = w.pair * p.t + w.row;
  score_halves<H>(p, way, w, g.q, g.k, scores);
  multiply_halves<H>(way, rows_at(g.dy, first, w.m, p.dv), turned(rows_at(g.v, w.pair * p.s + w.col, w.n, p.dv)), products,
                     kCols, false);
  for (std::int64_t i = 0; i < w.m; ++i) {
    float *row = scores + i * kCols, *drow = products + i * kCols;
    const float shift = number_at<float>(g.logsumexp, first + i);
    if (shift == -kInfinity<float>) {  // the query sees no key
      std::fill_n(probabilities + i * kCols, w.n, Half{0});
      std::fill_n(dscores + i * kCols, w.n, Half{0});
      continue;
    }
    const Half *y = g.y + (first + i) * p.dv, *dy = g.dy + (first + i) * p.dv;
    const float inner = row_sum<float>(p.dv, [&](std::int64_t c) { return to_f32(H{y[c]}) * to_f32(H{dy[c]}); }) -
                        number_at<float>(g.dlogsumexp, first + i);
    exp_row(row, w.n, shift);
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < w.n; ++j) drow[j] = row[j] * (drow[j] - inner);
    round_row<H>(w.n, row, probabilities + i * kCols);
    round_row<H>(w.n, drow, dscores + i * kCols);
  }
}

// Adds what one block of queries and keys contributes to dq (if for_queries), to dk and dv (if for_keys), or to all three.
template <class H>
void add_half_block(const AttentionCall& p, HalfProducts way, const HalfBackward& g, const ScoreBlock& w, bool for_queries,
                    bool for_keys) {
  alignas(64) Half probabilities[kRows * kCols];
  alignas(64) Half dscores[kRows * kCols];
  const std::int64_t row = w.pair * p.t + w.row, col = w.pair * p.s + w.col;
  grad_of_scores<H>(p, way, g, w, probabilities, dscores);
  const HalfMatrix of_scores{dscores, w.m, w.n, kCols, 1}, shares{probabilities, w.m, w.n, kCols, 1};
  if (for_queries) multiply_halves<H>(way, of_scores, rows_at(g.k, col, w.n, p.d), g.dq + row * g.d_stride, g.d_stride, true);
  if (!for_keys) return;
  multiply_halves<H>(way, turned(of_scores), rows_at(g.q, row, w.m, p.d), g.dk + col * g.d_stride, g.d_stride, true);
  multiply_halves<H>(way, turned(shares), rows_at(g.dy, row, w.m, p.dv), g.dv + col * g.v_stride, g.v_stride, true);
}

// Rounds rows of sums, times `scale`, into dense rows of n halves.
template <class H>
void round_sums(std::int64_t rows, std::int64_t n, float* sums, std::int64_t stride, float scale, Half* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* const row = sums + i * stride;
    for (std::int64_t j = 0; j < n; ++j) row[j] *= scale;
    round_row<H>(n, row, to + i * n);
  }
}

// A range of blocks of queries and of keys, of one pair.
struct BlockRange {
  std::int64_t pair, row, end_row, col, end_col;
};

// Computes the rows of dq of these queries (if for_queries) and the rows of dk and dv of these keys (if for_keys).
template <class H>
void grad_of_range(const AttentionCall& p, HalfProducts way, const HalfBackward& g, const BlockRange& r, bool for_queries,
                   bool for_keys) {
  const std::int64_t row = r.pair * p.t + r.row * kRows, col = r.pair * p.s + r.col * kCols;
  const std::int64_t rows = std::min(p.t, r.end_row * kRows) - r.row * kRows;
  const std::int64_t cols = std::min(p.s, r.end_col * kCols) - r.col * kCols;
  if (for_queries) std::fill_n(g.dq + row * g.d_stride, rows * g.d_stride, 0.0f);
  if (for_keys) std::fill_n(g.dk + col * g.d_stride, cols * g.d_stride, 0.0f);
  if (for_keys) std::fill_n(g.dv + col * g.v_stride, cols * g.v_stride, 0.0f);
  for (std::int64_t c = r.col; c < r.end_col; ++c)
    for (std::int64_t b = r.row; b < r.end_row; ++b) {
      const ScoreBlock w = half_block_at(p, r.pair, b, c);
      if (p.visible(w.row + w.m - 1, w.col)) add_half_block<H>(p, way, g, w, for_queries, for_keys);
    }
  const float scale = static_cast<float>(p.scale);
  if (for_queries) round_sums<H>(rows, p.d, g.dq + row * g.d_stride, g.d_stride, scale, g.q_out + row * p.d);
  if (!for_keys) return;
  round_sums<H>(cols, p.d, g.dk + col * g.d_stride, g.d_stride, scale, g.k_out + col * p.d);
  round_sums<H>(cols, p.dv, g.dv + col * g.v_stride, g.v_stride, 1.0f, g.v_out + col * p.dv);
}

template <class H>
void attention_grad_of_halves(const KernelCall& call, HalfProducts way) {
  const AttentionCall p(call, 7, kRows, kCols);
  const HalfBackward g(call, p);
  const std::int64_t rows = p.row_blocks(), cols = p.col_blocks();
  const double ns = 2.5 * p.ns_per_block();
  // For few pairs of many blocks, blocks of queries and blocks of keys are separate tasks, so the scores are computed twice.
  const bool together = p.pairs >= kManyPairs || rows * cols < 4;
  const std::int64_t jobs = together ? 1 : rows + cols;
  const double blocks = static_cast<double>(together ? rows * cols : std::min(rows, cols));
  parallel_for(p.pairs * jobs, grain_for((together ? 1 : 0.7) * ns * blocks + 10), [&](std::int64_t begin, std::int64_t end) {
    const OneThread one_thread;
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t pair = job / jobs, block = job % jobs;
      if (together)
        grad_of_range<H>(p, way, g, {pair, 0, rows, 0, cols}, true, true);
      else if (block < rows)
        grad_of_range<H>(p, way, g, {pair, block, block + 1, 0, cols}, true, false);
      else
        grad_of_range<H>(p, way, g, {pair, 0, rows, block - rows, block - rows + 1}, false, true);
    }
  });
}

}  // namespace

std::int64_t attention_grad_half_workspace(const std::int64_t* q_sizes, const std::int64_t* v_sizes) {
  const std::int64_t pairs = limited_product({q_sizes[0], q_sizes[1]}), t = q_sizes[2], s = v_sizes[2];
  const std::int64_t d = limited_product({limited_sum({q_sizes[3], 31}) / 32, 32});
  const std::int64_t dv = limited_product({limited_sum({v_sizes[3], 31}) / 32, 32});
  return limited_sum({limited_product({4, pairs, limited_sum({t, s}), d}), limited_product({4, pairs, s, dv})});
}

void attention_half(const KernelCall& call, HalfProducts way) {
  call.outputs[0].dtype == DType::bf16 ? attention_of_halves<Bf16>(call, way) : attention_of_halves<F16>(call, way);
}

void attention_grad_half(const KernelCall& call, HalfProducts way) {
  call.outputs[0].dtype == DType::bf16 ? attention_grad_of_halves<Bf16>(call, way) : attention_grad_of_halves<F16>(call, way);
}

}  // namespace tapedeck::kernels::cpu
