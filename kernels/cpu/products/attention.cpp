// Attention that never stores the matrix of scores (Rabe and Staats, 2021; Dao et al., "FlashAttention", 2022): blocks of kRows
// queries by kCols keys live on the stack.
//
// Forward keeps for every query the largest score so far, and the sum of exponentials relative to it. A larger score rescales
// the query's result. Backward computes each block of probabilities again from the saved logsumexp. Blocks are added in a fixed
// order: those of a query over ascending keys, those of a key over ascending queries, however the threads share the work.
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/onednn.h>
#include <tapedeck/kernels/cpu/products/attention_call.h>
#include <tapedeck/kernels/cpu/products/attention_half.h>
#include <tapedeck/kernels/parallel.h>

#include <dnnl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kRows = 64, kCols = 128;
constexpr std::int64_t kTinyProduct = 20 * 20 * 20;

// A row-major matrix. `turned` means that at(i, j) reads its transpose.
template <class T>
struct Operand {
  const T* data;
  std::int64_t stride;
  bool turned = false;

  const T& at(std::int64_t i, std::int64_t j) const { return turned ? data[j * stride + i] : data[i * stride + j]; }
};

// c = alpha a b, or c += alpha a b if `add`, for c [m,n], a [m,k], b [k,n]. The inner index is summed in order.
template <class T>
void multiply_loop(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Operand<T> a, Operand<T> b, T* c,
                   std::int64_t c_stride, bool add) {
  for (std::int64_t i = 0; i < m; ++i) {
    T* row = c + i * c_stride;
    if (!add) std::fill_n(row, n, T(0));
    for (std::int64_t p = 0; p < k; ++p) {
      const T left = alpha * a.at(i, p);
      if (b.turned)
        for (std::int64_t j = 0; j < n; ++j) row[j] += left * b.data[j * b.stride + p];
      else
        for (std::int64_t j = 0; j < n; ++j) row[j] += left * b.data[p * b.stride + j];
    }
  }
}

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Operand<T> a, Operand<T> b, T* c, std::int64_t c_stride,
              bool add) {
  if constexpr (std::is_same_v<T, float>) {
    if (m * n * k > kTinyProduct && alpha != 0) {  // dnnl_sgemm leaves c as it was if alpha and beta are 0
      dnnl_sgemm(a.turned ? 'T' : 'N', b.turned ? 'T' : 'N', m, n, k, alpha, a.data, a.stride, b.data, b.stride,
                 add ? 1.0f : 0.0f, c, c_stride);
      return;
    }
  }
  multiply_loop(m, n, k, alpha, a, b, c, c_stride, add);
}

// scores = scale q k^T, with the mask applied.
template <class T>
void score_block(const AttentionCall& p, const ScoreBlock& w, const T* q, const T* k, T* scores) {
  const Operand<T> queries{q + (w.pair * p.t + w.row) * p.d, p.d}, keys{k + (w.pair * p.s + w.col) * p.d, p.d, true};
  multiply(w.m, w.n, p.d, static_cast<T>(p.scale), queries, keys, scores, kCols, false);
  mask_scores(p, w, scores);
}

template <class T>
void attend_rows(const AttentionCall& p, std::int64_t pair, std::int64_t row_block, const T* q, const T* k, const T* v, T* y,
                 T* logsumexp) {
  alignas(64) T scores[kRows * kCols];
  T top[kRows], total[kRows];
  const ScoreBlock rows = score_block_at(p, pair, row_block, 0);
  T* result = y + (pair * p.t + rows.row) * p.dv;
  std::fill_n(result, rows.m * p.dv, T(0));
  std::fill_n(top, kRows, -kInfinity<T>);
  std::fill_n(total, kRows, T(0));
  for (std::int64_t block = 0; block < p.col_blocks(); ++block) {
    const ScoreBlock w = score_block_at(p, pair, row_block, block);
    if (!p.visible(w.row + w.m - 1, w.col)) break;
    score_block(p, w, q, k, scores);
    for (std::int64_t i = 0; i < w.m; ++i) absorb_row(scores + i * kCols, w.n, result + i * p.dv, p.dv, top + i, total + i);
    const Operand<T> probabilities{scores, kCols}, values{v + (pair * p.s + w.col) * p.dv, p.dv};
    multiply(w.m, p.dv, w.n, T(1), probabilities, values, result, p.dv, true);
  }
  for (std::int64_t i = 0; i < rows.m; ++i)
    finish_row(result + i * p.dv, p.dv, top[i], total[i], logsumexp + pair * p.t + rows.row + i);
}

template <class T>
void attention_of(const KernelCall& call) {
  const AttentionCall p(call, 3, kRows, kCols);
  const T *q = call.inputs[0].as<T>(), *k = call.inputs[1].as<T>(), *v = call.inputs[2].as<T>();
  T *y = call.outputs[0].as<T>(), *logsumexp = call.outputs[1].as<T>();
  const std::int64_t blocks = p.row_blocks();
  parallel_for(p.pairs * blocks, grain_for(p.ns_per_block() * static_cast<double>(p.col_blocks()) + 10),
               [&](std::int64_t begin, std::int64_t end) {
                 const OneThread one_thread;
                 for (std::int64_t job = begin; job < end; ++job)
                   attend_rows(p, job / blocks, job % blocks, q, k, v, y, logsumexp);
               });
}

// ---- backward ----

template <class T>
struct GradCall {
  const T *q, *k, *v, *y, *logsumexp, *dy, *dlogsumexp;
  T *dq, *dk, *dv;

  explicit GradCall(const KernelCall& call)
      : q(call.inputs[0].as<T>()),
        k(call.inputs[1].as<T>()),
        v(call.inputs[2].as<T>()),
        y(call.inputs[3].as<T>()),
        logsumexp(call.inputs[4].as<T>()),
        dy(call.inputs[5].as<T>()),
        dlogsumexp(call.inputs[6].as<T>()),
        dq(call.outputs[0].as<T>()),
        dk(call.outputs[1].as<T>()),
        dv(call.outputs[2].as<T>()) {}
};

// Computes one block of probabilities P, and the gradient of its scores dS = P (dy v^T - sum(dy y) + dlogsumexp).
template <class T>
void grad_block(const AttentionCall& p, const GradCall<T>& g, const ScoreBlock& w, T* probabilities, T* dscores) {
  const std::int64_t first = w.pair * p.t + w.row;
  score_block(p, w, g.q, g.k, probabilities);
  const Operand<T> dy{g.dy + first * p.dv, p.dv}, values{g.v + (w.pair * p.s + w.col) * p.dv, p.dv, true};
  multiply(w.m, w.n, p.dv, T(1), dy, values, dscores, kCols, false);
  for (std::int64_t i = 0; i < w.m; ++i) {
    T *row = probabilities + i * kCols, *drow = dscores + i * kCols;
    const T shift = g.logsumexp[first + i];
    if (shift == -kInfinity<T>) {  // the query sees no key
      std::fill_n(row, w.n, T(0));
      std::fill_n(drow, w.n, T(0));
      continue;
    }
    const T *y = g.y + (first + i) * p.dv, *head = g.dy + (first + i) * p.dv;
    const T inner = row_sum<T>(p.dv, [&](std::int64_t c) { return y[c] * head[c]; }) - g.dlogsumexp[first + i];
    exp_row(row, w.n, shift);
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < w.n; ++j) drow[j] = row[j] * (drow[j] - inner);
  }
}

// Adds what one block of queries and keys contributes to dq (if for_queries), to dk and dv (if for_keys), or to all three.
template <class T>
void add_block(const AttentionCall& p, const GradCall<T>& g, const ScoreBlock& w, bool for_queries, bool for_keys) {
  alignas(64) T probabilities[kRows * kCols];
  alignas(64) T dscores[kRows * kCols];
  const std::int64_t row = w.pair * p.t + w.row, col = w.pair * p.s + w.col;
  const T scale = static_cast<T>(p.scale);
  grad_block(p, g, w, probabilities, dscores);
  if (for_queries)
    multiply(w.m, p.d, w.n, scale, {dscores, kCols}, Operand<T>{g.k + col * p.d, p.d}, g.dq + row * p.d, p.d, true);
  if (!for_keys) return;
  multiply(w.n, p.d, w.m, scale, {dscores, kCols, true}, Operand<T>{g.q + row * p.d, p.d}, g.dk + col * p.d, p.d, true);
  multiply(w.n, p.dv, w.m, T(1), {probabilities, kCols, true}, Operand<T>{g.dy + row * p.dv, p.dv}, g.dv + col * p.dv, p.dv,
           true);
}

template <class T>
void add_blocks(const AttentionCall& p, const GradCall<T>& g, std::int64_t pair, std::int64_t rows, std::int64_t end_rows,
                std::int64_t cols, std::int64_t end_cols, bool for_queries, bool for_keys) {
  for (std::int64_t col = cols; col < end_cols; ++col)
    for (std::int64_t row = rows; row < end_rows; ++row) {
      const ScoreBlock w = score_block_at(p, pair, row, col);
      if (p.visible(w.row + w.m - 1, w.col)) add_block(p, g, w, for_queries, for_keys);
    }
}

template <class T>
void attention_grad_of(const KernelCall& call) {
  const AttentionCall p(call, 7, kRows, kCols);
  const GradCall<T> g(call);
  std::fill_n(g.dq, call.outputs[0].numel(), T(0));
  std::fill_n(g.dk, call.outputs[1].numel(), T(0));
  std::fill_n(g.dv, call.outputs[2].numel(), T(0));
  const std::int64_t rows = p.row_blocks(), cols = p.col_blocks();
  const double ns = 2.5 * p.ns_per_block();
  if (p.pairs >= kManyPairs || rows * cols < 4)
    return parallel_for(p.pairs, grain_for(ns * static_cast<double>(rows * cols) + 10),
                        [&](std::int64_t begin, std::int64_t end) {
                          const OneThread one_thread;
                          for (std::int64_t pair = begin; pair < end; ++pair)
                            add_blocks(p, g, pair, 0, rows, 0, cols, true, true);
                        });
  // For few pairs of many blocks: blocks of queries and blocks of keys are separate tasks, so the scores are computed twice.
  const std::int64_t jobs = rows + cols;
  parallel_for(p.pairs * jobs, grain_for(0.7 * ns * static_cast<double>(std::min(rows, cols)) + 10),
               [&](std::int64_t begin, std::int64_t end) {
                 const OneThread one_thread;
                 for (std::int64_t job = begin; job < end; ++job) {
                   const std::int64_t pair = job / jobs, block = job % jobs;
                   if (block < rows)
                     add_blocks(p, g, pair, block, block + 1, 0, cols, true, false);
                   else
                     add_blocks(p, g, pair, 0, rows, block - rows, block - rows + 1, false, true);
                 }
               });
}

}  // namespace

void scaled_dot_product_attention(const KernelCall& call) {
  const DType dtype = call.outputs[0].dtype;
  if (is_half(dtype)) return attention_half(call, half_products(dtype));
  for_floats(call, dtype, [&](auto t) { attention_of<decltype(t)>(call); });
}

void scaled_dot_product_attention_grad(const KernelCall& call) {
  const DType dtype = call.outputs[0].dtype;
  if (is_half(dtype)) return attention_grad_half(call, half_products(dtype));
  for_floats(call, dtype, [&](auto t) { attention_grad_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
