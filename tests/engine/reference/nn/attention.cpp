// References of attention: one query at a time, with all of its scores.
#include <tapedeck/engine/ops/attention.h>
#include <tapedeck/tests/engine/reference.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

double element(const Array& a, std::int64_t pair, std::int64_t row, std::int64_t col) {
  return a.v[(pair * a.type.shape[2] + row) * a.type.shape[3] + col];
}

// The masked scores of query `row` in batch-and-head pair `pair`.
std::vector<double> scores_of(const Example& e, const std::vector<Array>& x, std::size_t mask, std::int64_t pair,
                              std::int64_t row) {
  const auto& a = attributes_of<AttentionAttrs>(e);
  std::vector<double> scores;
  for (std::int64_t key = 0; key < x[1].type.shape[2]; ++key) {
    double score = 0;
    for (std::int64_t c = 0; c < x[0].type.shape[3]; ++c)
      score += a.scale * element(x[0], pair, row, c) * element(x[1], pair, key, c);
    if (x.size() > mask) {
      const std::int64_t heads = x[0].type.shape[1];
      const double m = broadcast_at(x[mask], {pair / heads, pair % heads, row, key});
      score = x[mask].type.dtype != DType::boolean ? score + m : m != 0 ? score : -INFINITY;
    }
    scores.push_back(a.causal && key > row ? -INFINITY : score);
  }
  return scores;
}

const AddReference attention_reference("scaled_dot_product_attention", [](const Example& e, const std::vector<Array>& x,
                                                                          const std::vector<Type>& out) {
  Array y = blank(out[0]), logsumexp = blank(out[1], -INFINITY);
  const std::int64_t t = x[0].type.shape[2], columns = out[0].shape[3];
  for (std::size_t query = 0; query < logsumexp.v.size(); ++query) {
    const std::int64_t pair = static_cast<std::int64_t>(query) / t, row = static_cast<std::int64_t>(query) % t;
    const std::vector<double> scores = scores_of(e, x, 3, pair, row);
    double total = 0;
    for (double s : scores) total += std::exp(s);
    if (total == 0) continue;
    logsumexp.v[query] = std::log(total);
    for (std::size_t key = 0; key < scores.size(); ++key)
      for (std::int64_t c = 0; c < columns; ++c)
        y.v[query * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)] +=
            std::exp(scores[key]) / total * element(x[2], pair, static_cast<std::int64_t>(key), c);
  }
  return std::vector<Array>{y, logsumexp};
});

// dscore = exp(score - logsumexp) (dy v - sum(dy y) + dlogsumexp); y and logsumexp are operands.
const AddReference grad_reference("scaled_dot_product_attention_grad", [](const Example& e, const std::vector<Array>& x,
                                                                          const std::vector<Type>& out) {
  Array dq = blank(out[0]), dk = blank(out[1]), dv = blank(out[2]);
  const std::int64_t t = x[0].type.shape[2], d = x[0].type.shape[3], columns = x[2].type.shape[3];
  auto at = [](Array& a, std::int64_t pair, std::int64_t row, std::int64_t col) -> double& {
    return a.v[(pair * a.type.shape[2] + row) * a.type.shape[3] + col];
  };
  for (std::size_t query = 0; query < x[4].v.size(); ++query) {
    const std::int64_t pair = static_cast<std::int64_t>(query) / t, row = static_cast<std::int64_t>(query) % t;
    const std::vector<double> scores = scores_of(e, x, 7, pair, row);
    double inner = -x[6].v[query];
    for (std::int64_t c = 0; c < columns; ++c) inner += element(x[5], pair, row, c) * element(x[3], pair, row, c);
    for (std::int64_t key = 0; key < static_cast<std::int64_t>(scores.size()); ++key) {
      const double p = std::exp(scores[key] - x[4].v[query]);
      double dscore = -inner;
      for (std::int64_t c = 0; c < columns; ++c) {
        dscore += element(x[5], pair, row, c) * element(x[2], pair, key, c);
        at(dv, pair, key, c) += p * element(x[5], pair, row, c);
      }
      for (std::int64_t c = 0; c < d; ++c) {
        at(dq, pair, row, c) += attributes_of<AttentionAttrs>(e).scale * p * dscore * element(x[1], pair, key, c);
        at(dk, pair, key, c) += attributes_of<AttentionAttrs>(e).scale * p * dscore * element(x[0], pair, row, c);
      }
    }
  }
  return std::vector<Array>{dq, dk, dv};
});

}  // namespace
}  // namespace tapedeck::testing
