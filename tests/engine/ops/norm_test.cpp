// Tests normalisations: values worked out by hand, sizes on both sides of every block size of the kernels against the
// references, and error messages.
#include <tapedeck/engine/ops/norm.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/mistakes.h>
#include <tapedeck/tests/engine/reference.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::Array;
using testing::expect_mistakes;
using testing::expect_near;
using testing::f32;
using testing::Mistake;

TEST(Norm, BatchNormOfTwoChannels) {
  // Channel 0: 1 3 5 7, mean 4, variance 5. Channel 1: 2 2 4 4, mean 3, variance 1.
  const Tensor x = from_vector(std::vector<float>{1, 3, 2, 2, 5, 7, 4, 4}, {2, 2, 2});
  const BatchNormResult r = batch_norm(x, tensor({1, 2}), tensor({0, 10}), 0);
  expect_near(r.mean, {4, 3});
  expect_near(r.variance, {5, 1});
  const double a = 1 / std::sqrt(5.0);
  expect_near(r.y, {-3 * a, -a, 8, 8, a, 3 * a, 12, 12});
  expect_near(batch_norm_inference(x, r.mean, r.variance, tensor({1, 2}), tensor({0, 10}), 0),
              {-3 * a, -a, 8, 8, a, 3 * a, 12, 12});
}

TEST(Norm, LayerNormAndRmsNormOfOneRow) {
  const Tensor x = tensor({1, 3, 5, 7});
  const double a = 1 / std::sqrt(5.0), b = 1 / std::sqrt(21.0);
  expect_near(layer_norm(x, {}, {}, 0), {-3 * a, -a, a, 3 * a});
  expect_near(layer_norm(x, tensor({1, 2, 3, 4}), tensor({0, 0, 0, 1}), 0), {-3 * a, -2 * a, 3 * a, 12 * a + 1});
  expect_near(rms_norm(x, {}, 0), {b, 3 * b, 5 * b, 7 * b});
  expect_near(rms_norm(x, tensor({1, 0, 0, 2}), 0), {b, 0, 0, 14 * b});
}

TEST(Norm, WeightsSayOverHowManyDimensions) {
  const Tensor x = from_vector(std::vector<float>{1, 3, 5, 7}, {1, 2, 2});
  const double a = 1 / std::sqrt(5.0);
  expect_near(layer_norm(x, ones({2, 2}), {}, 0), {-3 * a, -a, a, 3 * a});
  expect_near(layer_norm(x, ones({2}), {}, 0), {-1, 1, -1, 1});
  expect_near(layer_norm(x, {}, {}, 0, 2), {-3 * a, -a, a, 3 * a});
}

TEST(Norm, GroupsShareStatistics) {
  const Tensor x = from_vector(std::vector<float>{1, 3, 5, 7, 0, 2, 0, 2}, {1, 4, 2});
  const double a = 1 / std::sqrt(5.0);
  expect_near(group_norm(x, 2, {}, {}, 0), {-3 * a, -a, a, 3 * a, -1, 1, -1, 1});
  expect_near(instance_norm(x, {}, {}, 0), {-1, 1, -1, 1, -1, 1, -1, 1});
  expect_near(group_norm(x, 2, tensor({1, 1, 2, 3}), tensor({0, 0, 1, 0}), 0), {-3 * a, -a, a, 3 * a, -1, 3, -3, 3});
}

TEST(Norm, AConstantRowBecomesItsBias) {
  expect_near(layer_norm(full({2, 3}, 7), ones({3}), tensor({1, 2, 3})), {1, 2, 3, 1, 2, 3});
  const BatchNormResult r = batch_norm(full({4, 2}, -3), ones({2}), tensor({5, 6}));
  expect_near(r.y, {5, 6, 5, 6, 5, 6, 5, 6});
  expect_near(r.variance, {0, 0});
}

// A mean that is far larger than the deviation must not cost digits of the variance.
TEST(Norm, LargeMeansDoNotCancel) {
  std::vector<float> values;
  for (int i = 0; i < 40000; ++i) values.push_back(10000.0f + (i % 2 ? 0.5f : -0.5f));
  for (const Shape& shape : {Shape{40, 1, 1000}, Shape{40000, 1}}) {
    const BatchNormResult r = batch_norm(from_vector(values, shape));
    expect_near(r.mean, {10000}, 1e-2);
    expect_near(r.variance, {0.25}, 1e-6);
  }
}

TEST(Norm, NothingToNormalise) {
  const BatchNormResult r = batch_norm(f32({0, 3, 4}), ones({3}), zeros({3}));
  EXPECT_EQ(r.y.shape(), (Shape{0, 3, 4}));
  expect_near(r.mean, {0, 0, 0});
  EXPECT_EQ(layer_norm(f32({3, 0})).shape(), (Shape{3, 0}));
}

TEST(Norm, EmaMovesByTheMomentum) {
  Tensor running = tensor({1, 10});
  ema_in_place(running, tensor({3, 0}), 0.25);
  expect_near(running, {1.5, 7.5});
}

TEST(Norm, NormalizeDividesByTheLength) {
  const Tensor x = from_vector(std::vector<float>{3, 4, 0, 0}, {2, 2});
  expect_near(normalize(x), {0.6, 0.8, 0, 0});
  expect_near(normalize(x, 1), {3 / 7.0, 4 / 7.0, 0, 0});
  expect_near(normalize(x, INFINITY), {0.75, 1, 0, 0});
  expect_near(normalize(x, 2, 0), {1, 1, 0, 0});
  Tensor zero = zeros({2});
  zero.requires_grad(true);
  backward(sum(normalize(zero, 2, -1, 0.5)));
  expect_near(zero.grad(), {2, 2});  // for a zero vector the divisor is eps
}

TEST(Norm, LocalResponseNormLooksAtNeighbouringChannels) {
  const Tensor x = from_vector(std::vector<float>{1, 2, 3}, {1, 3, 1});
  // The divisors are k + alpha / size * (sum over channels c-1 .. c+1), to the power 1: 1 + 5, 1 + 14, 1 + 13.
  expect_near(local_response_norm(x, 3, 3, 1, 1), {1.0 / 6, 2.0 / 15, 3.0 / 14});
  // A window of even size takes one more channel below than above: 1 + 1, 1 + 5, 1 + 13.
  expect_near(local_response_norm(x, 2, 2, 1, 1), {1.0 / 2, 2.0 / 6, 3.0 / 14});
}

TEST(Norm, SoftminIsSoftmaxOfTheNegative) {
  const double e = std::exp(1.0);
  expect_near(softmin(tensor({0, 1})), {e / (e + 1), 1 / (e + 1)});
}

// Sizes that are larger than a block of the kernel and no multiple of it. Every result is compared with the reference.
class LargeNorm : public ::testing::TestWithParam<const char*> {};

Array f64_array_of(const Tensor& t) {
  const Tensor wide = cast(t, DType::f64);
  return {wide.type(), wide.to_vector<double>()};
}

TEST_P(LargeNorm, AgreesWithItsReference) {
  const std::string text = GetParam();
  const Op& op = *find_op(text.substr(0, text.find('(')));
  const testing::Example e = testing::parse_example(op, text);
  for (DType real : {DType::f32, DType::f64}) {
    const std::vector<Tensor> operands = testing::make_operands(e, real, 11), results = testing::run(e, operands);
    std::vector<Array> x;
    for (const Tensor& t : operands) x.push_back(f64_array_of(t));
    std::vector<Type> out;
    for (const Tensor& t : results) out.push_back(t.type());
    const std::vector<Array> wanted = testing::references()[op.name].run(e, x, out);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::vector<double> got = f64_array_of(results[k]).v;
      ASSERT_EQ(got.size(), wanted[k].v.size());
      // Sums of many terms that cancel: the error of an f32 result depends on the largest partial sum.
      const double tolerance = real == DType::f32 ? 2e-4 : 1e-10;
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], wanted[k].v[i], tolerance * std::max(1.0, std::fabs(wanted[k].v[i])))
            << "result " << k << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LargeNorm,
    ::testing::Values(
        "batch_norm(f32[3,2,23,1000], f32[2], f32[2])", "batch_norm(f32[70,3,33,31], f32[3], f32[3])",
        "batch_norm(f32[1100,70], f32[70], f32[70])", "batch_norm(f32[530,23,3], f32[23], f32[23])",
        "batch_norm_grad(f32[70,3,33,31], f32[70,3,33,31], f32[3], f32[3] in (0.5,2), f32[3], f32[3], f32[3])",
        "batch_norm_grad(f32[1100,70], f32[1100,70], f32[70], f32[70] in (0.5,2), f32[70], f32[70], f32[70])",
        "batch_norm_grad(f32[530,23,3], f32[530,23,3], f32[23], f32[23] in (0.5,2), f32[23], f32[23], f32[23])",
        "layer_norm(f32[3,5003], f32[5003], f32[5003])", "layer_norm(f32[300,129], f32[129], f32[129])",
        "layer_norm_grad(f32[3,5003], f32[3,5003], f32[3], f32[3] in (0.5,2), f32[3], f32[3], f32[5003])",
        "layer_norm_grad(f32[700,129], f32[700,129], f32[700], f32[700] in (0.5,2), f32[700], f32[700], f32[129])",
        "rms_norm(f32[300,2051], f32[2051])",
        "rms_norm_grad(f32[700,129], f32[700,129], f32[700] in (0.5,2), f32[700], f32[129])",
        "group_norm(f32[3,6,41,53], f32[6], f32[6]) {groups=2}",
        "group_norm_grad(f32[3,6,41,53], f32[3,6,41,53], f32[3,2], f32[3,2] in (0.5,2), f32[3,2], f32[3,2], f32[6]) "
        "{groups=2}"));

const Mistake kNormMistakes[] = {
    MISTAKE("[batch_norm] needs at least 2 dimensions, got f32[3]", batch_norm(f32({3}))),
    MISTAKE("[batch_norm] the weight must be f32[4], not f32[3]", batch_norm(f32({2, 4, 5}), f32({3}), f32({4}))),
    MISTAKE("[batch_norm] the bias must be f32[4], not f64[4]", batch_norm(f32({2, 4, 5}), f32({4}), zeros({4}, DType::f64))),
    MISTAKE("[batch_norm] a bias needs a weight", batch_norm(f32({2, 4, 5}), {}, f32({4}))),
    MISTAKE("[batch_norm] eps must not be negative", batch_norm(f32({2, 4, 5}), {}, {}, -1)),
    MISTAKE("[batch_norm] needs a floating type, got i32[2,3]", batch_norm(zeros({2, 3}, DType::i32))),
    MISTAKE("[batch_norm_inference] the variance must be f32[4], not f32[5]",
            batch_norm_inference(f32({2, 4}), f32({4}), f32({5}))),
    MISTAKE("[batch_norm_inference] operand 1 is undefined", batch_norm_inference(f32({2, 4}), {}, f32({5}))),
    MISTAKE("[layer_norm] the weight must be f32[5], not f32[4]", layer_norm(f32({2, 5}), f32({4}))),
    MISTAKE("[layer_norm] cannot normalise over 3 dimensions of f32[2,5]", layer_norm(f32({2, 5}), {}, {}, 1e-5, 3)),
    MISTAKE("[layer_norm] a bias needs a weight", layer_norm(f32({2, 5}), {}, f32({5}))),
    MISTAKE("[rms_norm] cannot normalise over 0 dimensions of f32[2,5]", rms_norm(f32({2, 5}), {}, 1e-5, 0)),
    MISTAKE("[group_norm] the channels of f32[2,5] do not fall into 2 groups", group_norm(f32({2, 5}), 2)),
    MISTAKE("[group_norm] the channels of f32[2,5] do not fall into 0 groups", group_norm(f32({2, 5}), 0)),
    MISTAKE("[instance_norm] needs at least 2 dimensions, got f32[3]", instance_norm(f32({3}))),
    MISTAKE("[local_response_norm] needs a size of at least 1, got 0", local_response_norm(f32({2, 3}), 0)),
    MISTAKE("[normalize] p must be 1, 2 or infinity, not 3", normalize(f32({2, 3}), 3)),
    MISTAKE("[ema] operands differ in type: f32[3] and f32[4]", ema_in_place(f32({3}), f32({4}))),
};

TEST(Norm, MistakesSayWhatIsWrong) { expect_mistakes(kNormMistakes, "norm_test.cpp"); }

}  // namespace
}  // namespace tapedeck
