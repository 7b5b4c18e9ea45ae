// Tests attention of f16 and bf16 numbers and its gradient against softmax written out in double precision, one query at a
// time, by every way that this processor has.
#include <tapedeck/tests/kernels/halves.h>

#include <tapedeck/kernels/attrs/attention.h>
#include <tapedeck/kernels/cpu/products/attention_half.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::testing {
namespace {

using AttentionKernel = void (*)(const KernelCall&, kernels::cpu::HalfProducts);

struct HalfAttentionCase {
  std::int64_t pairs, t, s, d, e;
  AttentionAttrs attrs;
  char mask = 0;  // 'b' for bool, 'h' for numbers, of [t,s]
};

// Sizes around the blocks of 64 queries by 256 keys, odd sizes, results and rows wider than a tile of a product, and nothing.
const std::vector<HalfAttentionCase>& half_attention_cases() {
  static const std::vector<HalfAttentionCase> cases = {
      {2, 5, 7, 4, 6, {0.5, false}},        {1, 66, 259, 12, 20, {0.3, false}},
      {1, 300, 70, 9, 5, {0.4, true}},      {3, 70, 140, 33, 40, {0.2, true}},
      {1, 65, 70, 270, 259, {0.05, true}},  {1, 3, 5, 6, 600, {0.1, false}},
      {2, 20, 41, 15, 33, {1, false}, 'b'}, {2, 20, 41, 16, 8, {-0.3, true}, 'h'},
      {1, 4, 0, 3, 2, {1, false}},          {1, 3, 4, 0, 2, {1, false}},
      {1, 3, 4, 2, 0, {1, false}}};
  return cases;
}

struct HalfAttention {
  Array q, k, v, y, logsumexp, mask;
};

Array half_attention_mask(Random& random, const HalfAttentionCase& c, DType dtype) {
  if (c.mask == 'h') return random_halves(random, dtype, {c.t, c.s});
  const Array mask = make_array(DType::boolean, {c.t, c.s});
  for (std::int64_t i = 0; i < mask.numel(); ++i) mask.set(i, i / c.s != 2 && random() % 3 != 0);  // query 2 sees nothing
  return mask;
}

void run_half_attention(AttentionKernel kernel, kernels::cpu::HalfProducts way, const AttentionAttrs& attrs,
                        std::vector<Array> in, const std::vector<Array>& out, std::vector<char>* workspace = nullptr) {
  std::vector<View> views;
  for (const Array& a : in) views.push_back(a.view);
  for (const Array& a : out) views.push_back(a.view);
  KernelFault fault;
  KernelCall call;
  call.inputs = views.data(), call.n_inputs = static_cast<std::int32_t>(in.size());
  call.outputs = views.data() + in.size(), call.n_outputs = static_cast<std::int32_t>(out.size());
  call.attrs = &attrs, call.fault = &fault;
  if (workspace) call.workspace = workspace->data(), call.workspace_bytes = workspace->size();
  kernel(call, way);
  EXPECT_EQ(fault.what.load(), nullptr);
}

HalfAttention attention_of_halves(Random& random, const HalfAttentionCase& c, const HalfWay& w) {
  HalfAttention a;
  a.q = random_halves(random, w.dtype, {c.pairs, 1, c.t, c.d});
  a.k = random_halves(random, w.dtype, {c.pairs, 1, c.s, c.d});
  a.v = random_halves(random, w.dtype, {c.pairs, 1, c.s, c.e});
  a.y = make_array(w.dtype, {c.pairs, 1, c.t, c.e});
  a.logsumexp = make_array(DType::f32, {c.pairs, 1, c.t});
  std::vector<Array> in = {a.q, a.k, a.v};
  if (c.mask) in.push_back(a.mask = half_attention_mask(random, c, w.dtype));
  run_half_attention(kernels::cpu::attention_half, w.way, c.attrs, in, {a.y, a.logsumexp});
  return a;
}

// The scores of query i of a pair.
std::vector<double> scores_of_query(const HalfAttentionCase& c, const HalfAttention& a, std::int64_t pair, std::int64_t i) {
  std::vector<double> scores;
  for (std::int64_t j = 0; j < c.s; ++j) {
    double dot = 0;
    for (std::int64_t p = 0; p < c.d; ++p)
      dot += static_cast<double>(half_value(a.q, (pair * c.t + i) * c.d + p)) * half_value(a.k, (pair * c.s + j) * c.d + p);
    double score = c.attrs.scale * dot;
    if (c.mask == 'h') score += half_value(a.mask, i * c.s + j);
    const bool hidden = (c.attrs.causal && j > i) || (c.mask == 'b' && a.mask.get(i * c.s + j) == 0);
    scores.push_back(hidden ? -std::numeric_limits<double>::infinity() : score);
  }
  return scores;
}

double log_of_sum(const std::vector<double>& scores) {
  double total = 0;
  for (const double x : scores) total += std::exp(x);
  return std::log(total);
}

double half_attention_tolerance(DType dtype) { return dtype == DType::bf16 ? 1.6e-2 : 2e-3; }

TEST(HalfAttention, IsCloseToSoftmaxWrittenOut) {
  Random random(31);
  for (const HalfWay& w : ways_of_this_processor())
    for (const HalfAttentionCase& c : half_attention_cases()) {
      const HalfAttention a = attention_of_halves(random, c, w);
      for (std::int64_t row = 0; row < c.pairs * c.t; ++row) {
        const std::vector<double> scores = scores_of_query(c, a, row / c.t, row % c.t);
        const double logsumexp = log_of_sum(scores);
        if (std::isinf(logsumexp))
          ASSERT_EQ(a.logsumexp.at<float>(row), logsumexp);
        else
          ASSERT_NEAR(a.logsumexp.at<float>(row), logsumexp, 1e-4 * std::max(1.0, std::fabs(logsumexp)));
        for (std::int64_t col = 0; col < c.e; ++col) {
          double y = 0;
          for (std::int64_t j = 0; j < c.s; ++j)
            if (!std::isinf(scores[static_cast<std::size_t>(j)]))
              y += std::exp(scores[static_cast<std::size_t>(j)] - logsumexp) *
                   half_value(a.v, (row / c.t * c.s + j) * c.e + col);
          ASSERT_NEAR(half_value(a.y, row * c.e + col), y, half_attention_tolerance(w.dtype))
              << c.t << "x" << c.s << " " << row;
        }
      }
    }
}

struct HalfAttentionGrads {
  Array dy, dlogsumexp, dq, dk, dv;
};

HalfAttentionGrads gradients_of_halves(Random& random, const HalfAttentionCase& c, const HalfWay& w, const HalfAttention& a,
                                       DType of_logsumexp = DType::f32) {
  HalfAttentionGrads g{random_halves(random, w.dtype, {c.pairs, 1, c.t, c.e}), make_array(of_logsumexp, {c.pairs, 1, c.t}),
                       make_array(w.dtype, {c.pairs, 1, c.t, c.d}), make_array(w.dtype, {c.pairs, 1, c.s, c.d}),
                       make_array(w.dtype, {c.pairs, 1, c.s, c.e})};
  Array logsumexp = make_array(of_logsumexp, {c.pairs, 1, c.t});
  for (std::int64_t i = 0; i < c.pairs * c.t; ++i) {
    const float number = a.logsumexp.at<float>(i), grad = 0.25f * static_cast<float>(i % 5) - 0.5f;
    if (of_logsumexp == DType::f32)
      logsumexp.at<float>(i) = number, g.dlogsumexp.at<float>(i) = grad;
    else
      logsumexp.at<std::uint16_t>(i) = half_bits(of_logsumexp, number), g.dlogsumexp.set(i, half_bits(of_logsumexp, grad));
  }
  std::vector<Array> in = {a.q, a.k, a.v, a.y, logsumexp, g.dy, g.dlogsumexp};
  if (c.mask) in.push_back(a.mask);
  std::vector<char> workspace(
      static_cast<std::size_t>(kernels::cpu::attention_grad_half_workspace(a.q.view.sizes, a.v.view.sizes)) + 64, 0x7f);
  run_half_attention(kernels::cpu::attention_grad_half, w.way, c.attrs, in, {g.dq, g.dk, g.dv}, &workspace);
  return g;
}

// Sums in double precision, and the sums of magnitudes, which tell how large an error may be.
struct WantedSums {
  explicit WantedSums(std::int64_t n) : sums(static_cast<std::size_t>(n)), sizes(static_cast<std::size_t>(n)) {}
  void add(std::int64_t at, double x) {
    sums[static_cast<std::size_t>(at)] += x;
    sizes[static_cast<std::size_t>(at)] += std::fabs(x);
  }
  void expect(const Array& got, double tolerance, const char* what) const {
    for (std::int64_t i = 0; i < got.numel(); ++i) {
      const double size = sizes[static_cast<std::size_t>(i)];
      ASSERT_NEAR(half_value(got, i), sums[static_cast<std::size_t>(i)], tolerance * (size + 0.1)) << what << " " << i;
    }
  }
  std::vector<double> sums, sizes;
};

void expect_gradients(const HalfAttentionCase& c, const HalfAttention& a, const HalfAttentionGrads& g, double tolerance) {
  WantedSums dq(a.q.numel()), dk(a.k.numel()), dv(a.v.numel());
  for (std::int64_t row = 0; row < c.pairs * c.t; ++row) {
    const std::vector<double> scores = scores_of_query(c, a, row / c.t, row % c.t);
    const double logsumexp = log_of_sum(scores);
    double inner = 0.5 - 0.25 * static_cast<double>(row % 5);
    for (std::int64_t col = 0; col < c.e; ++col)
      inner += static_cast<double>(half_value(a.y, row * c.e + col)) * half_value(g.dy, row * c.e + col);
    for (std::int64_t j = 0; j < c.s; ++j) {
      if (std::isinf(scores[static_cast<std::size_t>(j)])) continue;
      const double p = std::exp(scores[static_cast<std::size_t>(j)] - logsumexp);
      const std::int64_t key = row / c.t * c.s + j;
      double product = 0;
      for (std::int64_t col = 0; col < c.e; ++col) {
        product += static_cast<double>(half_value(g.dy, row * c.e + col)) * half_value(a.v, key * c.e + col);
        dv.add(key * c.e + col, p * half_value(g.dy, row * c.e + col));
      }
      const double dscore = p * (product - inner) * c.attrs.scale;
      for (std::int64_t i = 0; i < c.d; ++i) {
        dq.add(row * c.d + i, dscore * half_value(a.k, key * c.d + i));
        dk.add(key * c.d + i, dscore * half_value(a.q, row * c.d + i));
      }
    }
  }
  dq.expect(g.dq, tolerance, "dq");
  dk.expect(g.dk, tolerance, "dk");
  dv.expect(g.dv, tolerance, "dv");
}

TEST(HalfAttention, GradientsAreCloseToSumsWrittenOut) {
  Random random(32);
  for (const HalfWay& w : ways_of_this_processor())
    for (const HalfAttentionCase& c : half_attention_cases()) {
      SCOPED_TRACE(c.t * 1000 + c.s);
      const HalfAttention a = attention_of_halves(random, c, w);
      expect_gradients(c, a, gradients_of_halves(random, c, w, a), half_attention_tolerance(w.dtype));
    }
}

// After a cast of all operands, logsumexp may be of half precision too. It holds numbers that f16 and bf16 store exactly.
TEST(HalfAttention, TakesALogsumexpOfHalfPrecision) {
  Random random(33);
  for (const HalfWay& w : ways_of_this_processor()) {
    const HalfAttentionCase c{2, 9, 11, 8, 8, {0.3, false}};
    HalfAttention a = attention_of_halves(random, c, w);
    for (std::int64_t i = 0; i < a.logsumexp.numel(); ++i) a.logsumexp.at<float>(i) = std::nearbyint(a.logsumexp.at<float>(i));
    Random same(34), again(34);
    const HalfAttentionGrads wide = gradients_of_halves(same, c, w, a), half = gradients_of_halves(again, c, w, a, w.dtype);
    EXPECT_TRUE(same_bits(wide.dq, half.dq) && same_bits(wide.dk, half.dk) && same_bits(wide.dv, half.dv));
  }
}

// Few pairs of many blocks share the work among threads in another way than many pairs.
TEST(HalfAttention, APairAloneHasTheBitsOfAPairAmongMany) {
  for (const HalfWay& w : ways_of_this_processor())
    for (const bool causal : {false, true}) {
      const HalfAttentionCase all{8, 200, 300, 24, 16, {0.2, causal}}, one{1, 200, 300, 24, 16, {0.2, causal}};
      Random random(35);
      const HalfAttention a = attention_of_halves(random, all, w);
      HalfAttentionGrads g;
      with_threads(2, [&] { g = gradients_of_halves(random, all, w, a); });
      const auto last = [&](const Array& x) {
        Array part = x;
        part.view.sizes[0] = 1;
        part.view.data = x.address(7 * x.numel() / 8);
        return dense_copy(part);
      };
      const HalfAttention b{last(a.q), last(a.k), last(a.v), last(a.y), last(a.logsumexp), {}};
      const Array y = make_array(w.dtype, {1, 1, one.t, one.e}), logsumexp = make_array(DType::f32, {1, 1, one.t});
      run_half_attention(kernels::cpu::attention_half, w.way, one.attrs, {b.q, b.k, b.v}, {y, logsumexp});
      EXPECT_TRUE(same_bits(y, b.y) && same_bits(logsumexp, b.logsumexp));
      const Array dq = make_array(w.dtype, {1, 1, one.t, one.d}), dk = make_array(w.dtype, {1, 1, one.s, one.d}),
                  dv = make_array(w.dtype, {1, 1, one.s, one.e});
      std::vector<char> workspace(
          static_cast<std::size_t>(kernels::cpu::attention_grad_half_workspace(b.q.view.sizes, b.v.view.sizes)));
      for (const int threads : {1, 2}) {
        with_threads(threads, [&] {
          run_half_attention(kernels::cpu::attention_grad_half, w.way, one.attrs,
                             {b.q, b.k, b.v, b.y, b.logsumexp, last(g.dy), last(g.dlogsumexp)}, {dq, dk, dv}, &workspace);
        });
        EXPECT_TRUE(same_bits(dq, last(g.dq)) && same_bits(dk, last(g.dk)) && same_bits(dv, last(g.dv))) << threads;
      }
    }
}

}  // namespace
}  // namespace tapedeck::testing
