// Tests losses as authors call them: closed-form values, options, the tensors that backward keeps, and every refused call.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/loss.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/mistakes.h>
#include <tapedeck/tests/engine/values.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck {
namespace {

using testing::expect_mistakes;
using testing::f32;
using testing::i32;
using testing::kInf;
using testing::message_of;
using testing::Mistake;
using testing::without_folders;

Tensor f64_of(const std::vector<double>& values, const Shape& shape) { return from_bytes({DType::f64, shape}, values.data()); }
Tensor f64_of(const std::vector<double>& values) { return f64_of(values, {static_cast<std::int64_t>(values.size())}); }
Tensor labels(const std::vector<std::int32_t>& values) {
  return from_vector(values, {static_cast<std::int64_t>(values.size())});
}

void expect_values(const Tensor& t, const std::vector<double>& expected, double tolerance = 1e-12) {
  const std::vector<double> got = cast(t, DType::f64).to_vector<double>();
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(expected[i]))
      EXPECT_EQ(got[i], expected[i]) << i;
    else
      EXPECT_NEAR(got[i], expected[i], tolerance) << i;
  }
}

// Two rows with probabilities 1/2, 1/4, 1/4 and 1/8, 3/8, 1/2, as logarithms.
const double kHalf = std::log(0.5), kQuarter = std::log(0.25), kEighth = std::log(0.125), kThree = std::log(0.375);
Tensor two_rows() { return f64_of({kHalf, kQuarter, kQuarter, kEighth, kThree, kHalf}, {2, 3}); }

// ---- cross entropy ----

TEST(CrossEntropy, IsMinusTheLogOfTheProbabilityOfTheLabel) {
  expect_values(cross_entropy(two_rows() + 7, labels({0, 1}), {.reduction = "none"}), {-kHalf, -kThree});
  expect_values(cross_entropy(two_rows(), labels({0, 1}), {.reduction = "sum"}), {-kHalf - kThree});
  expect_values(cross_entropy(two_rows(), labels({0, 1})), {(-kHalf - kThree) / 2});
}

TEST(CrossEntropy, IgnoresOneLabelAltogether) {
  Tensor x = two_rows();
  x.requires_grad(true);
  const Tensor loss = cross_entropy(x, labels({0, -100}));
  expect_values(loss, {-kHalf});
  backward(loss);
  expect_values(x.grad(), {-0.5, 0.25, 0.25, 0, 0, 0});
  expect_values(cross_entropy(x, labels({2, 1}), {.ignore_index = 2, .reduction = "none"}), {0, -kThree});
}

TEST(CrossEntropy, OfNothingButIgnoredRowsIsNan) {
  Tensor x = two_rows();
  x.requires_grad(true);
  const Tensor loss = cross_entropy(x, labels({-100, -100}));
  EXPECT_TRUE(std::isnan(loss.item()));
  backward(loss);
  expect_values(x.grad(), {0, 0, 0, 0, 0, 0});
}

TEST(CrossEntropy, WeightsDivideTheMean) {
  const Tensor w = f64_of({1, 3, 10});
  expect_values(cross_entropy(two_rows(), labels({0, 1}), {.weights = w, .reduction = "none"}), {-kHalf, -3 * kThree});
  expect_values(cross_entropy(two_rows(), labels({0, 1}), {.weights = w}), {(-kHalf - 3 * kThree) / 4});
}

// A smoothed target adds (1 - s) for the label and s / c for each of c classes.
TEST(CrossEntropy, SmoothsLabels) {
  const double smooth0 = -(kHalf + 2 * kQuarter) / 3, smooth1 = -(kEighth + kThree + kHalf) / 3;
  expect_values(cross_entropy(two_rows(), labels({0, 1}), {.label_smoothing = 0.1}),
                {(0.9 * (-kHalf - kThree) + 0.1 * (smooth0 + smooth1)) / 2});
  expect_values(cross_entropy(two_rows(), labels({0, -100}), {.label_smoothing = 0.1}), {0.9 * -kHalf + 0.1 * smooth0});
}

TEST(CrossEntropy, ClassesAreTheSecondDimension) {
  const Tensor x = transpose(reshape(two_rows(), {1, 2, 3}), {0, 2, 1});  // [1,3,2]: one sample with two positions
  expect_values(cross_entropy(x, reshape(labels({0, 1}), {1, 2}), {.reduction = "none"}), {-kHalf, -kThree});
}

TEST(CrossEntropy, TakesProbabilities) {
  const Tensor target = f64_of({1, 0, 0, 0, 0.5, 0.5}, {2, 3});
  expect_values(cross_entropy(two_rows(), target, {.reduction = "none"}), {-kHalf, -0.5 * (kThree + kHalf)});
  expect_values(cross_entropy(two_rows(), f64_of({1, 0, 0, 0, 1, 0}, {2, 3}), {.label_smoothing = 0.1}),
                {cross_entropy(two_rows(), labels({0, 1}), {.label_smoothing = 0.1}).item()});
  expect_values(cross_entropy(two_rows(), target, {.weights = f64_of({2, 4, 0}), .reduction = "sum"}),
                {-2 * kHalf - 2 * kThree});
}

TEST(CrossEntropy, SurvivesHugeLogits) {
  expect_values(cross_entropy(f64_of({1e300, 0, 0, -1e300}, {2, 2}), labels({0, 0})), {0});
  EXPECT_EQ(cross_entropy(from_vector(std::vector<float>{1e30f, 0}, {1, 2}), labels({1})).item(), 1e30f);
}

TEST(CrossEntropy, KeepsLogitsAndLabelsOnly) {
  Tensor x = zeros({5, 3}), w = ones({3});
  x.requires_grad(true);
  const Tensor y = labels({0, 1, 2, 0, 1});
  {
    const Tensor loss = cross_entropy(x, y, {.label_smoothing = 0.1});
    EXPECT_EQ(tape_stats().saved_bytes, x.bytes() + y.bytes());
  }
  const Tensor loss = cross_entropy(x, y, {.weights = w});
  EXPECT_EQ(tape_stats().saved_bytes, x.bytes() + y.bytes() + w.bytes());
}

TEST(NllLoss, PicksTheLogProbabilityOfTheLabelAndKeepsLabelsOnly) {
  expect_values(nll_loss(two_rows(), labels({0, 1})), {(-kHalf - kThree) / 2});
  expect_values(nll_loss(two_rows(), labels({1, -100}), {.weights = f64_of({1, 3, 10}), .reduction = "sum"}), {-3 * kQuarter});
  Tensor x = two_rows();
  x.requires_grad(true);
  const Tensor y = labels({0, 1}), loss = nll_loss(x, y);
  EXPECT_EQ(tape_stats().saved_bytes, y.bytes());
  backward(loss);
  expect_values(x.grad(), {-0.5, 0, 0, 0, -0.5, 0});
}

// ---- losses of differences ----

TEST(DifferenceLosses, FollowTheirDefinitions) {
  const Tensor x = f64_of({1, 2, 5}), t = f64_of({1.5, 2, 1});
  expect_values(mse_loss(x, t), {(0.25 + 0 + 16) / 3});
  expect_values(mse_loss(x, t, "sum"), {16.25});
  expect_values(mse_loss(x, t, "none"), {0.25, 0, 16});
  expect_values(l1_loss(x, t), {1.5});
  expect_values(huber_loss(x, t, 2, "none"), {0.125, 0, 6});  // the linear part: 2 (4 - 1)
  expect_values(smooth_l1_loss(x, t, 2, "none"), {0.0625, 0, 3});
  expect_values(smooth_l1_loss(x, t), {(0.125 + 3.5) / 3});
  expect_values(smooth_l1_loss(x, t, 0), {1.5});
}

// The gradient of the mean of squares is 2 (x - t) / n.
TEST(DifferenceLosses, HaveTheirGradients) {
  Tensor x = f64_of({1, 2, 5});
  x.requires_grad(true);
  backward(mse_loss(x, f64_of({1.5, 2, 1})));
  expect_values(x.grad(), {-1.0 / 3, 0, 8.0 / 3});
  x.set_grad(Tensor());
  backward(huber_loss(x, f64_of({1.5, 2, 1}), 2, "sum"));
  expect_values(x.grad(), {-0.5, 0, 2});
}

// ---- losses of probabilities ----

TEST(BinaryCrossEntropy, FollowsItsDefinition) {
  const Tensor p = f64_of({0.5, 0.25, 1, 0}), t = f64_of({1, 0.5, 1, 1});
  expect_values(binary_cross_entropy(p, t, {.reduction = "none"}), {-kHalf, -0.5 * std::log(0.25 * 0.75), 0, 100});
  expect_values(binary_cross_entropy(p, t, {.weight = f64_of({2, 0, 1, 0}), .reduction = "sum"}), {-2 * kHalf});
}

TEST(BinaryCrossEntropy, OfLogitsIsThatOfTheSigmoidAndRightInTheTails) {
  const Tensor x = f64_of({0, 1, -2}), t = f64_of({1, 0.3, 0});
  expect_values(binary_cross_entropy_with_logits(x, t), {binary_cross_entropy(sigmoid(x), t).item()});
  expect_values(binary_cross_entropy_with_logits(f64_of({1000, -1000, 1000}), f64_of({0, 0, 1}), {.reduction = "none"}),
                {1000, 0, 0});
  const Tensor tiny = binary_cross_entropy_with_logits(tensor({20}), tensor({1}));
  EXPECT_NEAR(tiny.item(), std::exp(-20), 1e-15) << "log1p, not log";
  expect_values(
      binary_cross_entropy_with_logits(f64_of({0, 0}), f64_of({1, 0}), {.pos_weight = f64_of({3, 3}), .reduction = "none"}),
      {-3 * kHalf, -kHalf});
}

TEST(KlDiv, FollowsItsDefinition) {
  const Tensor x = f64_of({kHalf, kQuarter, kQuarter, kHalf}, {2, 2}), t = f64_of({0.25, 0, 1, 0.5}, {2, 2});
  const std::vector<double> expected{0.25 * (kQuarter - kHalf), 0, -kQuarter, 0.5 * (kHalf - kHalf)};
  const double total = expected[0] + expected[2];
  expect_values(kl_div(x, t, "none"), expected);
  expect_values(kl_div(x, t), {total / 4});
  expect_values(kl_div(x, t, "batchmean"), {total / 2});
  expect_values(kl_div(x, log(f64_of({0.25, 1, 1, 0.5}, {2, 2})), "none", true), {expected[0], -kQuarter, -kQuarter, 0});
}

// ---- margin losses ----

TEST(MarginLosses, FollowTheirDefinitions) {
  const Tensor x = f64_of({2, 0.25, -3}), y = f64_of({1, -1, -1});
  expect_values(soft_margin_loss(x, y, "none"),
                {std::log1p(std::exp(-2)), std::log1p(std::exp(0.25)), std::log1p(std::exp(-3))});
  expect_values(hinge_embedding_loss(x, y, 1, "none"), {2, 0.75, 4});
  expect_values(margin_ranking_loss(x, f64_of({1, 1, 1}), y, 0.5, "none"), {0, 0, 0});
  expect_values(margin_ranking_loss(x, f64_of({3, -1, -4}), y, 0.5, "none"), {1.5, 1.75, 1.5});
}

TEST(CosineSimilarity, IsTheCosineAndZeroForZero) {
  const Tensor a = f64_of({3, 4, 1, 0, 0, 0}, {3, 2}), b = f64_of({4, 3, -2, 0, 1, 1}, {3, 2});
  expect_values(cosine_similarity(a, b), {24.0 / 25, -1, 0});
  expect_values(cosine_similarity(a, f64_of({0, 1}), -1), {0.8, 0, 0});
  expect_values(cosine_embedding_loss(a, b, labels({1, -1, -1}), 0.5, "none"), {1.0 / 25, 0, 0});
  expect_values(cosine_embedding_loss(a, b, f64_of({-1, -1, -1}), 0.5, "none"), {0.46, 0, 0});
  Tensor zero = f64_of({0, 0}, {1, 2});
  zero.requires_grad(true);
  backward(sum(cosine_similarity(zero, f64_of({1, 1}, {1, 2}))));
  for (double g : zero.grad().to_vector<double>()) EXPECT_TRUE(std::isfinite(g));
}

TEST(CosineSimilarity, OfLargeElementsDoesNotOverflow) {
  const Tensor a = from_vector(std::vector<float>{1e25f, 0}, {1, 2}), b = from_vector(std::vector<float>{3e30f, 4e30f}, {1, 2});
  EXPECT_FLOAT_EQ(static_cast<float>(cosine_similarity(a, b).item()), 0.6f);
}

TEST(CosineSimilarity, BroadcastsAlongTheAxisToo) {
  const Tensor a = f64_of({1, 2, 2, 4}, {1, 4}), ones = f64_of({1, 1, 1, 1}, {1, 4});
  EXPECT_DOUBLE_EQ(cosine_similarity(a, f64_of({1}, {1, 1})).item(), cosine_similarity(a, ones).item());
}

TEST(TripletLoss, ComparesDistances) {
  const Tensor a = f64_of({0, 0}, {1, 2}), p = f64_of({3, 4}, {1, 2}), n = f64_of({0, 6}, {1, 2});
  EXPECT_NEAR(pairwise_distance(a, p).item(), 5, 2e-6);
  EXPECT_NEAR(pairwise_distance(a, p, 1).item(), 7, 3e-6);
  EXPECT_NEAR(pairwise_distance(a, p, kInf).item(), 4, 2e-6);
  EXPECT_NEAR(pairwise_distance(a, p, 3).item(), std::cbrt(27 + 64), 2e-6);
  EXPECT_NEAR(triplet_margin_loss(a, p, n, {.margin = 2}).item(), 1, 3e-6);
  EXPECT_NEAR(triplet_margin_loss(a, p, n, {.margin = 2, .swap = true}).item(), 7 - std::sqrt(9 + 4), 3e-6);
}

// ---- losses of distributions ----

TEST(PoissonLoss, FollowsItsDefinition) {
  const Tensor x = f64_of({0.5, 1}), t = f64_of({1, 3});
  expect_values(poisson_nll_loss(x, t, {.reduction = "none"}), {std::exp(0.5) - 0.5, std::exp(1) - 3});
  expect_values(poisson_nll_loss(x, t, {.log_input = false, .eps = 0, .reduction = "none"}), {0.5 - std::log(0.5), 1});
  expect_values(poisson_nll_loss(x, t, {.full = true, .reduction = "none"}),
                {std::exp(0.5) - 0.5, std::exp(1) - 3 + 3 * std::log(3) - 3 + 0.5 * std::log(6 * M_PI)});
}

TEST(GaussianLoss, FollowsItsDefinition) {
  const Tensor x = f64_of({1, 2}), t = f64_of({0, 4}), v = f64_of({2, 0});
  expect_values(gaussian_nll_loss(x, t, v, false, 0.5, "none"), {0.5 * (std::log(2) + 0.5), 0.5 * (std::log(0.5) + 8)});
  expect_values(gaussian_nll_loss(x, t, f64_of({1}), true, 1e-6, "none"),
                {0.5 + 0.5 * std::log(2 * M_PI), 2 + 0.5 * std::log(2 * M_PI)});
}

// ---- ctc ----

// Two time steps with probabilities of the classes blank, a, b. The paths aa, a- and -a all spell "a".
TEST(CtcLoss, SumsTheAlignments) {
  const Tensor p = f64_of({0.5, 0.3, 0.2, 0.4, 0.5, 0.1}, {2, 1, 3});
  const Tensor target = from_vector(std::vector<std::int32_t>{1, 2}, {1, 2});
  auto loss = [&](int times, int length, CtcOptions o = {.reduction = "none"}) {
    return ctc_loss(log(p), target, labels({times}), labels({length}), o);
  };
  expect_values(loss(2, 1), {-std::log(0.3 * 0.5 + 0.3 * 0.4 + 0.5 * 0.5)});
  expect_values(loss(2, 2), {-std::log(0.3 * 0.1)});
  expect_values(loss(2, 0), {-std::log(0.5 * 0.4)});
  expect_values(loss(0, 0), {0});
  expect_values(loss(1, 2), {kInf});
  expect_values(loss(1, 2, {.zero_infinity = true}), {0});
  expect_values(loss(2, 2, {}), {-std::log(0.3 * 0.1) / 2});
  expect_values(loss(2, 0, {}), {-std::log(0.5 * 0.4)});
}

TEST(CtcLoss, ARepeatedLabelNeedsABlankBetween) {
  const Tensor p = log(full({3, 1, 2}, 0.5, DType::f64));
  const Tensor target = from_vector(std::vector<std::int32_t>{1, 1}, {1, 2});
  expect_values(ctc_loss(p, target, labels({3}), labels({2}), {.reduction = "sum"}), {-3 * kHalf});  // only the path a-a
  expect_values(ctc_loss(p, target, labels({2}), labels({2}), {.reduction = "sum"}), {kInf});
}

TEST(CtcLoss, ImpossibleTargetsHaveNoGradientIfInfinityIsZero) {
  Tensor p = log(full({1, 1, 2}, 0.5, DType::f64)).detach();
  p.requires_grad(true);
  const Tensor target = from_vector(std::vector<std::int32_t>{1, 1}, {1, 2});
  backward(ctc_loss(p, target, labels({1}), labels({2}), {.zero_infinity = true}));
  expect_values(p.grad(), {0, 0});
}

TEST(CtcLoss, KeepsItsOperandsOnly) {
  Tensor p = zeros({40, 2, 5});
  p.requires_grad(true);
  const Tensor target = from_vector(std::vector<std::int32_t>{1, 2, 3, 4}, {2, 2});
  const Tensor lengths = labels({40, 30}), sizes = labels({2, 1});
  const Tensor loss = ctc_loss(p, target, lengths, sizes, {.reduction = "sum"});
  EXPECT_EQ(tape_stats().saved_bytes, p.bytes() + target.bytes() + lengths.bytes() + sizes.bytes());
}

TEST(CtcLoss, ReportsWhatIsOutOfRange) {
  const Tensor p = zeros({3, 1, 2}), target = from_vector(std::vector<std::int32_t>{1, 5}, {1, 2});
  auto message = [&](int times, int length) {
    return without_folders(message_of<ExecutionError>([&] { ctc_loss(p, target, labels({times}), labels({length})); }));
  };
  EXPECT_MENTIONS(message(4, 1), "[ctc_loss] input length out of range (4)");
  EXPECT_MENTIONS(message(3, 3), "[ctc_loss] target length out of range (3)");
  EXPECT_MENTIONS(message(3, 2), "[ctc_loss] label out of range (5)");
}

// ---- refused calls ----

const Mistake kLossMistakes[] = {
    MISTAKE("[cross_entropy] label_smoothing must be between 0 and 1",
            cross_entropy(f32({4, 3}), i32({4}), {.label_smoothing = 1.5})),
    MISTAKE("[cross_entropy] reduction must be none, mean or sum, not 'avg'",
            cross_entropy(f32({4, 3}), i32({4}), {.reduction = "avg"})),
    MISTAKE("[cross_entropy] the weights must be f32[3], not f32[4]",
            cross_entropy(f32({4, 3}), i32({4}), {.weights = f32({4})})),
    MISTAKE("[cross_entropy] no classes in f32[4,0]", cross_entropy(f32({4, 0}), i32({4}))),
    MISTAKE("[cross_entropy] labels i32[4] do not fit logits f32[4,3,2]", cross_entropy(f32({4, 3, 2}), i32({4}))),
    MISTAKE("[cross_entropy] the weights must be f32[3], not f32[2]",
            cross_entropy(f32({4, 3}), f32({4, 3}), {.weights = f32({2})})),
    MISTAKE("[nll_loss] labels i32[3] do not fit log probabilities f32[4,3]", nll_loss(f32({4, 3}), i32({3}))),
    MISTAKE("[mse_loss] the target f32[4] does not have the shape of f32[4,1]", mse_loss(f32({4, 1}), f32({4}))),
    MISTAKE("[mse_loss] needs a floating type, got i32[4]", mse_loss(i32({4}), i32({4}))),
    MISTAKE("[mse_loss] an operand is undefined", mse_loss(f32({4}), Tensor())),
    MISTAKE("[l1_loss] reduction must be none, mean or sum, not 'batchmean'", l1_loss(f32({4}), f32({4}), "batchmean")),
    MISTAKE("[huber] delta must be above 0", huber_loss(f32({4}), f32({4}), 0)),
    MISTAKE("[smooth_l1_loss] beta must be at least 0", smooth_l1_loss(f32({4}), f32({4}), -1)),
    MISTAKE("[binary_cross_entropy] pos_weight is for logits only",
            binary_cross_entropy(f32({4}), f32({4}), {.pos_weight = f32({})})),
    MISTAKE("[kl_div] batchmean needs a dimension to divide by", kl_div(f32({}), f32({}), "batchmean")),
    MISTAKE("[cosine_similarity] axis 2 is outside f32[4,3]", cosine_similarity(f32({4, 3}), f32({4, 3}), 2)),
    MISTAKE("[cosine_embedding_loss] the target i32[3] does not fit f32[4,3]",
            cosine_embedding_loss(f32({4, 3}), f32({4, 3}), i32({3}))),
    MISTAKE("[pairwise_distance] p must be above 0", pairwise_distance(f32({4}), f32({4}), 0)),
    MISTAKE("[gaussian_nll_loss] the variance f32[2,4] does not broadcast to f32[4]",
            gaussian_nll_loss(f32({4}), f32({4}), f32({2, 4}))),
    MISTAKE("[ctc_loss] log probabilities must be [time, n, classes], got f32[5,3]",
            ctc_loss(f32({5, 3}), i32({2}), i32({2}), i32({2}))),
    MISTAKE("[ctc_loss] targets must be i32 or i64 [2, length], not i32[3,2]",
            ctc_loss(f32({5, 2, 3}), i32({3, 2}), i32({2}), i32({2}))),
    MISTAKE("[ctc_loss] lengths must be i32[2] or i64[2], not i32[3]",
            ctc_loss(f32({5, 2, 3}), i32({2, 2}), i32({3}), i32({2}))),
    MISTAKE("[ctc_loss] the blank 3 is no class of f32[5,2,3]",
            ctc_loss(f32({5, 2, 3}), i32({2, 2}), i32({2}), i32({2}), {.blank = 3})),
};

TEST(LossErrors, NameTheLossTheTypesAndTheLine) { expect_mistakes(kLossMistakes, "loss_test.cpp"); }

}  // namespace
}  // namespace tapedeck
