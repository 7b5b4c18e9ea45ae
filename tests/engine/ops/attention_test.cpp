// Tests attention: values by hand, sizes beyond one block against the references, masks, second gradients, and error messages.
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/attention.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/differences.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/mistakes.h>
#include <tapedeck/tests/engine/reference.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::Array;
using testing::expect_near;
using testing::f32;
using testing::message_of;
using testing::Mistake;
using testing::without_folders;

// The scores are 0 and log 3, so the probabilities are 1/4 and 3/4.
struct OneQuery {
  Tensor q = from_vector(std::vector<float>{2, 0, 0, 0}, {1, 1, 1, 4});
  Tensor k = from_vector(std::vector<float>{0, 0, 0, 0, static_cast<float>(std::log(3.0)), 0, 0, 0}, {1, 1, 2, 4});
  Tensor v = from_vector(std::vector<float>{4, 8}, {1, 1, 2, 1});
};

TEST(Attention, WeighsValuesByTheSoftmaxOfScores) {
  const OneQuery a;
  expect_near(scaled_dot_product_attention(a.q, a.k, a.v), {7});  // the default scale is 1 / sqrt(4)
  expect_near(scaled_dot_product_attention(a.q, a.k, a.v, {.scale = 1}), {(4 + 9 * 8) / 10.0});
}

TEST(Attention, MasksHideOrShift) {
  const OneQuery a;
  expect_near(scaled_dot_product_attention(a.q, a.k, a.v, {.causal = true}), {4});
  const Tensor hide = equal(tensor({1, 0}), 1);
  expect_near(scaled_dot_product_attention(a.q, a.k, a.v, {.mask = hide}), {4});
  const Tensor shift = tensor({static_cast<float>(std::log(3.0)), 0});
  expect_near(scaled_dot_product_attention(a.q, a.k, a.v, {.mask = shift}), {6});
  expect_near(scaled_dot_product_attention(a.q, a.k, a.v, {.mask = tensor({-INFINITY, 0})}), {8});
}

TEST(Attention, AQueryThatSeesNothingGivesZeroAndNoGradient) {
  OneQuery a;
  const Tensor mask = equal(tensor({0, 0}), 1);
  for (Tensor* t : {&a.q, &a.k, &a.v}) t->requires_grad(true);
  const Tensor y = scaled_dot_product_attention(a.q, a.k, a.v, {.mask = mask});
  expect_near(y, {0});
  backward(sum(y));
  expect_near(a.q.grad(), {0, 0, 0, 0});
  expect_near(a.v.grad(), {0, 0});
  expect_near(scaled_dot_product_attention(a.q, f32({1, 1, 0, 4}), f32({1, 1, 0, 2})), {0, 0});
}

TEST(Attention, LaterKeysDoNotReachEarlierQueries) {
  manual_seed(3);
  const Tensor q = normal({1, 2, 150, 8}), k = normal({1, 2, 150, 8}), v = normal({1, 2, 150, 8});
  const Tensor whole = scaled_dot_product_attention(q, k, v, {.causal = true});
  const Tensor part =
      scaled_dot_product_attention(slice(q, 2, 0, 64), slice(k, 2, 0, 64), slice(v, 2, 0, 64), {.causal = true});
  const std::vector<float> wanted = part.to_vector<float>();
  expect_near(slice(whole, 2, 0, 64), {wanted.begin(), wanted.end()}, 1e-5);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  OneQuery a;
  expect_near(scaled_dot_product_attention(mul(a.q, 1000), a.k, a.v), {8});
  expect_near(scaled_dot_product_attention(mul(a.q, -1000), a.k, a.v), {4});
}

// Blocks large enough for oneDNN, which leaves a product as it was if both of its factors alpha and beta are 0. (As a f32, this
// scale is 0.)
TEST(Attention, AScaleOfZeroWeighsAllValuesEqually) {
  manual_seed(4);
  const Tensor q = normal({1, 1, 70, 3}), k = normal({1, 1, 131, 3}), v = normal({1, 1, 131, 2});
  const std::vector<float> average = mean(v, {2}).to_vector<float>();
  const std::vector<float> y = scaled_dot_product_attention(q, k, v, {.scale = 1e-60}).to_vector<float>();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], average[i % 2], 1e-5f) << "element " << i;
}

TEST(Attention, TakesNoWorkspace) {
  const Type big{DType::f32, {2, 4, 4096, 64}}, row{DType::f32, {2, 4, 4096}};
  const Type forward[3] = {big, big, big}, backward_types[7] = {big, big, big, big, row, big, row};
  const AttentionAttrs attrs;
  EXPECT_EQ(workspace_bytes(ops::scaled_dot_product_attention, forward, {}, &attrs), 0);
  EXPECT_EQ(workspace_bytes(ops::scaled_dot_product_attention_grad, backward_types, {}, &attrs), 0);
}

TEST(Attention, SavesWhatIsLinearInTheLength) {
  Tensor q = f32({1, 1, 256, 4}), k = f32({1, 1, 256, 4}), v = f32({1, 1, 256, 4});
  for (Tensor* t : {&q, &k, &v}) t->requires_grad(true);
  const Tensor y = scaled_dot_product_attention(q, k, v);
  EXPECT_EQ(tape_stats().saved_bytes, 4 * (4 * 256 * 4 + 256));  // f32 elements of q, k, v and y, and of the logsumexp
}

// ---- second gradients ----

struct SecondCase {
  const char* name;
  AttentionOptions options;
};

std::vector<SecondCase> second_cases() {
  const Tensor some = equal(tensor({1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0}), 1);
  return {{"plain", {}},
          {"scale", {.scale = 0.3}},
          {"causal", {.causal = true}},
          {"bool mask", {.mask = reshape(some, {3, 4})}},
          {"bool mask, causal", {.mask = reshape(some, {1, 3, 4}), .causal = true, .scale = 0.9}},
          {"float mask", {.mask = normal({2, 1, 3, 4}, 0, 1, DType::f64)}},
          {"float mask, causal", {.mask = normal({4}, 0, 1, DType::f64), .causal = true}}};
}

// Attention by matmul and softmax.
Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const double scale = o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(q.size(3)));
  Tensor scores = mul(matmul(q, transpose_last(k)), scale);
  if (o.mask.defined()) scores = o.mask.dtype() == DType::boolean ? where(o.mask, scores, -INFINITY) : add(scores, o.mask);
  if (o.causal) {
    const Tensor rows = reshape(arange(q.size(2)), {q.size(2), 1});
    scores = where(greater_equal(rows, arange(k.size(2))), scores, -INFINITY);
  }
  return matmul(softmax(scores), v);
}

using AttentionForm = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const AttentionOptions&);

Tensor fused(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  return scaled_dot_product_attention(q, k, v, o);
}

// The first gradients of a loss that is not linear in y, for q, k, v and a float mask.
std::vector<Tensor> first_gradients(AttentionForm form, const std::vector<Tensor>& in, AttentionOptions o, bool create_graph) {
  std::vector<Tensor> wrt;
  for (const Tensor& t : in) {
    wrt.push_back(t.requires_grad() ? t : t.detach());
    wrt.back().requires_grad(true);
  }
  if (wrt.size() > 3) o.mask = wrt[3];
  return gradients({sum(sin(form(wrt[0], wrt[1], wrt[2], o)))}, wrt, {.create_graph = create_graph});
}

std::vector<Tensor> second_operands(const AttentionOptions& o) {
  manual_seed(11);
  const auto draw = [](const Shape& shape) { return normal(shape, 0, 1, DType::f64); };
  std::vector<Tensor> in = {draw({2, 2, 3, 5}), draw({2, 2, 4, 5}), draw({2, 2, 4, 2})};
  if (o.mask.defined() && o.mask.dtype() == DType::f64) in.push_back(o.mask);
  return in;
}

// sum(cos(first gradients)) differentiated: no part of a first gradient is missed.
std::vector<Tensor> second_gradients(AttentionForm form, const std::vector<Tensor>& in, const AttentionOptions& o) {
  std::vector<Tensor> wrt;
  for (const Tensor& t : in) {
    wrt.push_back(t.detach());
    wrt.back().requires_grad(true);
  }
  Tensor total;
  for (const Tensor& g : first_gradients(form, wrt, o, true)) total = total.defined() ? add(total, sum(cos(g))) : sum(cos(g));
  return gradients({total}, wrt);
}

TEST(Attention, SecondGradientsAreThoseOfMatmulAndSoftmax) {
  for (const SecondCase& c : second_cases()) {
    SCOPED_TRACE(c.name);
    const std::vector<Tensor> in = second_operands(c.options);
    const std::vector<Tensor> got = second_gradients(fused, in, c.options), wanted = second_gradients(composed, in, c.options);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::vector<double> g = got[i].to_vector<double>(), w = wanted[i].to_vector<double>();
      for (std::size_t j = 0; j < g.size(); ++j) EXPECT_NEAR(g[j], w[j], 1e-10) << "operand " << i << ", element " << j;
    }
  }
}

TEST(Attention, SecondGradientsAreThoseOfDifferences) {
  std::mt19937_64 random(5);
  for (const SecondCase& c : second_cases()) {
    const std::vector<Tensor> in = second_operands(c.options), second = second_gradients(fused, in, c.options);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::vector<double> direction = testing::random_numbers(in[i].numel(), random);
      const double numeric = testing::central_difference(in[i], direction, [&](const Tensor& moved) {
        std::vector<Tensor> operands = in;
        operands[i] = moved;
        double total = 0;
        for (const Tensor& g : first_gradients(fused, operands, c.options, false)) total += sum(cos(g)).item();
        return total;
      });
      testing::expect_same_slope(testing::along(second[i], direction), numeric, 1e-6,
                                 std::string(c.name) + ", operand " + std::to_string(i));
    }
  }
}

TEST(Attention, SecondGradientsOfAQueryThatSeesNothingAreZero) {
  const AttentionOptions o{.mask = reshape(equal(tensor({1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1}), 1), {3, 4})};
  const std::vector<Tensor> in = second_operands(o), got = second_gradients(fused, in, o);
  for (const Tensor& g : got)
    for (double v : g.to_vector<double>()) EXPECT_TRUE(std::isfinite(v));
  for (double v : slice(got[0], 2, 1, 2).to_vector<double>()) EXPECT_EQ(v, 0);
  for (double v : slice(got[0], 2, 0, 1).to_vector<double>()) EXPECT_NE(v, 0);
}

// Scores that are hidden may be so large that their exponential is infinite.
TEST(Attention, SecondGradientsDoNotSeeHiddenScores) {
  const AttentionOptions o{.mask = equal(tensor({1, 1, 1, 0}), 1)};
  std::vector<Tensor> in = second_operands(o);
  slice_assign_(in[1], {0, 0, 3, 0}, {2, 2, 4, 5}, 1e4);
  for (const Tensor& g : second_gradients(fused, in, o))
    for (double v : g.to_vector<double>()) EXPECT_TRUE(std::isfinite(v));
}

TEST(Attention, SecondGradientsOfHalvesAreNearThoseOfF64) {
  const AttentionOptions o{.causal = true};
  std::vector<Tensor> half, wide;
  for (const Tensor& t : second_operands(o)) {
    half.push_back(cast(t, DType::f16));
    wide.push_back(cast(half.back(), DType::f64));
  }
  const std::vector<Tensor> got = second_gradients(fused, half, o), wanted = second_gradients(fused, wide, o);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].dtype(), DType::f16);
    const std::vector<double> g = cast(got[i], DType::f64).to_vector<double>(), w = wanted[i].to_vector<double>();
    for (std::size_t j = 0; j < g.size(); ++j) EXPECT_NEAR(g[j], w[j], 2e-2) << "operand " << i << ", element " << j;
  }
}

// Sizes that are no multiples of the block, with few pairs and with many. Every result is compared.
class LargeAttention : public ::testing::TestWithParam<const char*> {};

Array array_of(const Tensor& t) {
  const Tensor wide = t.dtype() == DType::boolean ? t : cast(t, DType::f64);
  if (t.dtype() != DType::boolean) return {wide.type(), wide.to_vector<double>()};
  Array a{t.type(), {}};
  for (unsigned char v : t.to_vector<unsigned char>()) a.v.push_back(v);
  return a;
}

TEST_P(LargeAttention, AgreesWithItsReference) {
  const std::string text = GetParam();
  const testing::Example forward = testing::parse_example(ops::scaled_dot_product_attention, text);
  for (DType real : {DType::f32, DType::f64}) {
    std::vector<Tensor> operands = testing::make_operands(forward, real, 7);
    auto check = [&](const testing::Example& e, std::vector<Tensor>* made) {
      const std::vector<Tensor> results = testing::run(e, operands);
      std::vector<Array> x;
      for (const Tensor& t : operands) x.push_back(array_of(t));
      std::vector<Type> out;
      for (const Tensor& t : results) out.push_back(t.type());
      const std::vector<Array> wanted = testing::references()[e.op->name].run(e, x, out);
      const double tolerance = real == DType::f32 ? 1e-4 : 1e-11;
      for (std::size_t r = 0; r < results.size(); ++r) {
        const std::vector<double> got = array_of(results[r]).v;
        for (std::size_t i = 0; i < got.size(); ++i)
          if (got[i] != wanted[r].v[i]) {
            ASSERT_NEAR(got[i], wanted[r].v[i], tolerance * std::max(1.0, std::fabs(wanted[r].v[i])))
                << e.op->name << ", result " << r << ", element " << i;
          }
      }
      *made = results;
    };
    std::vector<Tensor> y, grads;
    check(forward, &y);
    testing::Example grad = forward;
    grad.op = &ops::scaled_dot_product_attention_grad;
    std::vector<Tensor> with_heads = {
        operands[0], operands[1], operands[2], y[0], y[1], sin(mul(y[0], 7)), full(y[1].shape(), 0.25, real)};
    if (operands.size() > 3) with_heads.push_back(operands[3]);
    operands = with_heads;
    check(grad, &grads);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LargeAttention,
    ::testing::Values(
        "scaled_dot_product_attention(f32[1,2,150,16], f32[1,2,300,16], f32[1,2,300,9]) {scale=0.25}",
        "scaled_dot_product_attention(f32[3,3,70,20], f32[3,3,140,20], f32[3,3,140,20]) {scale=0.25}",
        "scaled_dot_product_attention(f32[1,1,300,16], f32[1,1,300,16], f32[1,1,300,16]) {scale=0.25, causal=true}",
        "scaled_dot_product_attention(f32[2,4,130,24], f32[2,4,130,24], f32[2,4,130,24]) {scale=0.25, causal=true}",
        "scaled_dot_product_attention(f32[2,1,65,5], f32[2,1,129,5], f32[2,1,129,4], bool[2,1,1,129]) {scale=0.5}",
        "scaled_dot_product_attention(f32[2,2,65,5], f32[2,2,129,5], f32[2,2,129,4], f32[65,129]) {scale=0.5, causal=true}"));

const Mistake kAttentionMistakes[] = {
    MISTAKE("[scaled_dot_product_attention] needs [batch,heads,length,size], got f32[2,3,4]",
            scaled_dot_product_attention(f32({2, 3, 4}), f32({2, 3, 4}), f32({2, 3, 4}))),
    MISTAKE("[scaled_dot_product_attention] batch or heads differ: f32[2,3,4,5] and f32[2,2,4,5]",
            scaled_dot_product_attention(f32({2, 3, 4, 5}), f32({2, 2, 4, 5}), f32({2, 3, 4, 5}))),
    MISTAKE("[scaled_dot_product_attention] queries f32[1,1,4,5] and keys f32[1,1,4,6] differ in size",
            scaled_dot_product_attention(f32({1, 1, 4, 5}), f32({1, 1, 4, 6}), f32({1, 1, 4, 5}))),
    MISTAKE("[scaled_dot_product_attention] keys f32[1,1,4,5] and values f32[1,1,3,5] differ in length",
            scaled_dot_product_attention(f32({1, 1, 4, 5}), f32({1, 1, 4, 5}), f32({1, 1, 3, 5}))),
    MISTAKE("[scaled_dot_product_attention] operands differ in dtype: f32[1,1,4,5] and f64[1,1,4,5]",
            scaled_dot_product_attention(f32({1, 1, 4, 5}), zeros({1, 1, 4, 5}, DType::f64), f32({1, 1, 4, 5}))),
    MISTAKE("[scaled_dot_product_attention] the mask bool[3,4] does not broadcast to [1,1,4,4]",
            scaled_dot_product_attention(f32({1, 1, 4, 5}), f32({1, 1, 4, 5}), f32({1, 1, 4, 5}),
                                         {.mask = zeros({3, 4}, DType::boolean)})),
    MISTAKE("[scaled_dot_product_attention] the mask bool[2,1,4,4] does not broadcast to [1,1,4,4]",
            scaled_dot_product_attention(f32({1, 1, 4, 5}), f32({1, 1, 4, 5}), f32({1, 1, 4, 5}),
                                         {.mask = zeros({2, 1, 4, 4}, DType::boolean)})),
    MISTAKE("[scaled_dot_product_attention] the mask must be bool or f32, not i32[4,4]",
            scaled_dot_product_attention(f32({1, 1, 4, 5}), f32({1, 1, 4, 5}), f32({1, 1, 4, 5}),
                                         {.mask = zeros({4, 4}, DType::i32)})),
    MISTAKE("[scaled_dot_product_attention] needs a floating type, got i32[1,1,4,5]",
            scaled_dot_product_attention(zeros({1, 1, 4, 5}, DType::i32), f32({1, 1, 4, 5}), f32({1, 1, 4, 5}))),
    MISTAKE("[scaled_dot_product_attention] the scale must be finite",
            scaled_dot_product_attention(f32({1, 1, 4, 5}), f32({1, 1, 4, 5}), f32({1, 1, 4, 5}), {.scale = INFINITY})),
};

TEST(Attention, MistakesSayWhatIsWrong) {
  for (const Mistake& m : kAttentionMistakes) {
    const std::string text = without_folders(message_of<TypeError>(m.program));
    EXPECT_EQ(text.substr(0, text.rfind(" (")), m.message);
  }
}

}  // namespace
}  // namespace tapedeck
