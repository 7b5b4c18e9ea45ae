// Tests cross_entropy of f16 and bf16 scores: against the f32 kernels on the same numbers, bit by bit, and one long row against
// sums in double precision.
#include <tapedeck/tests/kernels/halves.h>

#include <tapedeck/kernels/attrs/loss.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

struct ClassCase {
  DType dtype;
  Sizes scores;
  CrossEntropyAttrs attrs;
  DType labels;
  char weights;  // '-' for none, 'f' for f32, 'h' for the type of the scores
};

Array f32_of_halves(const Array& a) {
  const Array wide = make_array(DType::f32, Sizes(a.view.sizes, a.view.sizes + a.view.rank));
  for (std::int64_t i = 0; i < a.numel(); ++i) wide.at<float>(i) = half_value(a, i);
  return wide;
}

void run_class_loss(Kernel kernel, const CrossEntropyAttrs& attrs, const std::vector<Array>& in, const Array& out) {
  std::vector<View> views;
  for (const Array& a : in) views.push_back(a.view);
  KernelFault fault;
  KernelCall call;
  call.inputs = views.data(), call.n_inputs = static_cast<std::int32_t>(in.size());
  call.outputs = &out.view, call.n_outputs = 1;
  call.attrs = &attrs, call.fault = &fault;
  kernel(call);
  EXPECT_EQ(fault.what.load(), nullptr);
}

// Scores that are halves, the rest of the operands, and the same in f32.
struct ClassOperands {
  Array scores, wide_scores, labels, dloss, weights, wide_weights;
  Sizes rows;

  ClassOperands(Random& random, const ClassCase& c) : rows(c.scores) {
    rows.erase(rows.begin() + 1);
    scores = random_halves(random, c.dtype, c.scores);
    wide_scores = f32_of_halves(scores);
    labels = make_array(c.labels, rows);
    for (std::int64_t i = 0; i < labels.numel(); ++i) labels.set(i, static_cast<double>(random() % c.scores[1]));
    if (c.attrs.reduction.view() != "none") rows = {};
    const Array halves = random_halves(random, c.dtype, rows);
    dloss = f32_of_halves(halves);
    if (c.weights == '-') return;
    weights = random_halves(random, c.dtype, {c.scores[1]});
    wide_weights = f32_of_halves(weights);
    if (c.weights == 'f') weights = wide_weights;
  }
};

std::vector<Array> with_class_weights(std::vector<Array> operands, const Array& weights) {
  if (weights.storage) operands.push_back(weights);
  return operands;
}

void expect_bits_of_f32(Random& random, const ClassCase& c) {
  const ClassOperands o(random, c);
  const Array loss = make_array(DType::f32, o.rows), wide_loss = make_array(DType::f32, o.rows);
  run_class_loss(kernels::cpu::cross_entropy, c.attrs, with_class_weights({o.scores, o.labels}, o.weights), loss);
  run_class_loss(kernels::cpu::cross_entropy, c.attrs, with_class_weights({o.wide_scores, o.labels}, o.wide_weights),
                 wide_loss);
  EXPECT_TRUE(same_bits(loss, wide_loss));
  const Array rounded = make_array(c.dtype, o.rows);
  run_class_loss(kernels::cpu::cross_entropy, c.attrs, with_class_weights({o.scores, o.labels}, o.weights), rounded);
  for (std::int64_t i = 0; i < rounded.numel(); ++i)
    ASSERT_EQ(rounded.at<std::uint16_t>(i), half_bits(c.dtype, wide_loss.at<float>(i))) << i;
  const Array dx = make_array(c.dtype, c.scores), wide_dx = make_array(DType::f32, c.scores);
  run_class_loss(kernels::cpu::cross_entropy_grad, c.attrs,
                 with_class_weights({o.wide_scores, o.labels, o.dloss}, o.wide_weights), wide_dx);
  Array half_dloss = make_array(c.dtype, o.rows);
  for (std::int64_t i = 0; i < half_dloss.numel(); ++i)
    half_dloss.at<std::uint16_t>(i) = half_bits(c.dtype, o.dloss.at<float>(i));
  for (const Array& dloss : {o.dloss, half_dloss}) {
    run_class_loss(kernels::cpu::cross_entropy_grad, c.attrs, with_class_weights({o.scores, o.labels, dloss}, o.weights), dx);
    for (std::int64_t i = 0; i < dx.numel(); ++i)
      ASSERT_EQ(dx.at<std::uint16_t>(i), half_bits(c.dtype, wide_dx.at<float>(i))) << i;
  }
  run_class_loss(kernels::cpu::cross_entropy_grad, c.attrs, with_class_weights({o.scores, o.labels, o.dloss}, o.weights),
                 o.scores);  // in place
  EXPECT_TRUE(same_bits(o.scores, dx));
}

TEST(HalfCrossEntropy, HasTheBitsOfF32) {
  Random random(61);
  const Sizes sizes[] = {{5, 10}, {300, 3}, {3, 1030}, {2, 3, 5}, {2, 7, 13, 11}, {3, 4097}, {2, 4100, 3}};
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const Sizes& scores : sizes)
      for (const char* reduction : {"none", "mean", "sum"})
        for (const double smoothing : {0.0, 0.1})
          for (const char weights : {'-', 'f', 'h'}) {
            SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + reduction + " " + weights + " " + std::to_string(scores[1]));
            const DType labels = smoothing == 0 ? DType::i32 : DType::i64;
            expect_bits_of_f32(random, {dtype, scores, {smoothing, 1, reduction}, labels, weights});
          }
}

TEST(HalfCrossEntropy, OfALongRowIsCloseToSumsWrittenOut) {
  Random random(62);
  const std::int64_t classes = 50257, label = 777;
  const Array x = random_halves(random, DType::bf16, {1, classes}), labels = make_array(DType::i64, {1});
  labels.set(0, label);
  const CrossEntropyAttrs attrs{0, -100, "sum"};
  const Array loss = make_array(DType::f32, {}), dloss = make_array(DType::f32, {}), dx = make_array(DType::bf16, {1, classes});
  dloss.set(0, 3);
  run_class_loss(kernels::cpu::cross_entropy, attrs, {x, labels}, loss);
  run_class_loss(kernels::cpu::cross_entropy_grad, attrs, {x, labels, dloss}, dx);
  double total = 0;
  for (std::int64_t k = 0; k < classes; ++k) total += std::exp(static_cast<double>(half_value(x, k)));
  EXPECT_NEAR(loss.get(0), std::log(total) - half_value(x, label), 1e-5);
  for (std::int64_t k = 0; k < classes; ++k) {
    const double wanted = 3 * (std::exp(static_cast<double>(half_value(x, k))) / total - (k == label ? 1 : 0));
    ASSERT_NEAR(half_value(dx, k), wanted, std::fabs(wanted) * 0.004 + 1e-12) << k;
  }
}

}  // namespace
}  // namespace tapedeck::testing
