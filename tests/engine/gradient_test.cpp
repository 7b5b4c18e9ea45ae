// Every op, from the examples in its block: gradients against central differences in f64, layouts against dense operands, repeated
// runs against each other, and empty shapes against crashing.
#include <tapedeck/tests/engine/examples.h>

#include <cmath>
#include <cstring>

namespace tapedeck {
namespace {

using testing::Example;

class EveryExample : public ::testing::TestWithParam<Example> {
 protected:
  const Example& example() const { return GetParam(); }
};

bool any_float(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    if (is_floating(t.dtype())) return true;
  return false;
}

bool differentiable(const Op& op) { return op.vjp && !op.is(kNoGradient); }

std::vector<double> random_numbers(std::int64_t n, std::mt19937_64& random) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  return values;
}

Tensor f64(const std::vector<double>& values, const Shape& shape) {
  std::vector<double> filled = values;
  filled.push_back(0);  // so that there is an address
  return from_bytes({DType::f64, shape}, filled.data());
}

// <head, op(operands)>, by plain loops.
double projected(const Example& e, const std::vector<Tensor>& operands, const std::vector<double>& head) {
  const NoGrad no_grad;
  const std::vector<double> y = testing::run(e, operands)[0].to_vector<double>();
  double total = 0;
  for (std::size_t i = 0; i < y.size(); ++i) total += head[i] * y[i];
  return total;
}

// The operand shifted by step * direction.
Tensor shifted(const Tensor& x, const std::vector<double>& direction, double step) {
  std::vector<double> values = x.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
  return f64(values, x.shape());
}

// Gradients of <head, op(operands)> for the floating operands that `wanted` marks, by backward().
std::vector<Tensor> gradients(const Example& e, std::vector<Tensor> operands, const std::vector<double>& head, unsigned wanted) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operands[i] = operands[i].detach();
    if (is_floating(operands[i].dtype()) && ((wanted >> i) & 1)) operands[i].requires_grad(true);
  }
  const Tensor y = testing::run(e, operands)[0];
  if (y.requires_grad()) backward(y, {.head = f64(head, y.shape())});
  std::vector<Tensor> grads;
  for (const Tensor& x : operands) grads.push_back(x.grad());
  return grads;
}

TEST_P(EveryExample, GradientIsThatOfCentralDifferences) {
  const Example& e = example();
  for (std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::vector<Tensor> operands = testing::make_operands(e, DType::f64, seed);
    const std::vector<Tensor> results = testing::run(e, operands);
    if (!any_float(operands) || !is_floating(results[0].dtype()) || !differentiable(*e.op)) return;
    ASSERT_EQ(results[0].dtype(), DType::f64);
    const std::vector<double> head = random_numbers(results[0].numel(), random);
    const std::vector<Tensor> grads = gradients(e, operands, head, ~0u);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!is_floating(operands[i].dtype())) continue;
      const std::vector<double> direction = random_numbers(operands[i].numel(), random);
      std::vector<Tensor> up = operands, down = operands;
      constexpr double kStep = 1e-5;
      up[i] = shifted(operands[i], direction, kStep);
      down[i] = shifted(operands[i], direction, -kStep);
      const double numeric = (projected(e, up, head) - projected(e, down, head)) / (2 * kStep);
      double exact = 0;
      if (grads[i].defined()) {
        ASSERT_EQ(grads[i].type(), operands[i].type());
        const std::vector<double> g = grads[i].to_vector<double>();
        for (std::size_t k = 0; k < g.size(); ++k) exact += g[k] * direction[k];
      }
      EXPECT_NEAR(exact, numeric, 1e-6 * std::max(1.0, std::fabs(numeric))) << "operand " << i;
    }
  }
}

TEST_P(EveryExample, GradientDoesNotDependOnWhichOthersAreWanted) {
  const Example& e = example();
  const std::vector<Tensor> operands = testing::make_operands(e, DType::f64, 5);
  const Tensor y = testing::run(e, operands)[0];
  if (!is_floating(y.dtype()) || !differentiable(*e.op)) return;
  std::mt19937_64 random(5);
  const std::vector<double> head = random_numbers(y.numel(), random);
  const std::vector<Tensor> all = gradients(e, operands, head, ~0u);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::vector<Tensor> alone = gradients(e, operands, head, 1u << i);
    ASSERT_EQ(alone[i].defined(), all[i].defined()) << "operand " << i;
    if (alone[i].defined()) {
      EXPECT_TRUE(bit_equal(alone[i], all[i])) << "operand " << i;
    }
    for (std::size_t k = 0; k < operands.size(); ++k) EXPECT_TRUE(k == i || !alone[k].defined()) << "operand " << k;
  }
}

TEST_P(EveryExample, AskingForAGradientThatDoesNotExistIsAnError) {
  const Example& e = example();
  if (e.op->vjp || e.op->is(kNoGradient)) return;
  std::vector<Tensor> operands = testing::make_operands(e, DType::f32, 1);
  operands[0].requires_grad(true);
  const Tensor loss = sum(testing::run(e, operands)[0]);
  EXPECT_THROW(backward(loss), GradientError);
}

TEST_P(EveryExample, StridesDoNotChangeTheBits) {
  const Example& e = example();
  for (DType real : {DType::f32, DType::f64}) {
    const std::vector<Tensor> operands = testing::make_operands(e, real, 3);
    const std::vector<Tensor> dense = testing::run(e, operands);
    std::vector<Tensor> views;
    for (const Tensor& t : operands) views.push_back(testing::strided(t));
    const std::vector<Tensor> all = testing::run(e, views);
    for (std::size_t k = 0; k < dense.size(); ++k) EXPECT_TRUE(bit_equal(all[k], dense[k])) << "result " << k;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::vector<Tensor> one = operands;
      one[i] = views[i];
      const std::vector<Tensor> mixed = testing::run(e, one);
      for (std::size_t k = 0; k < dense.size(); ++k) EXPECT_TRUE(bit_equal(mixed[k], dense[k])) << "operand " << i;
    }
  }
}

TEST_P(EveryExample, RunsTwiceToTheSameBits) {
  const Example& e = example();
  const std::vector<Tensor> first = testing::run(e, testing::make_operands(e, DType::f32, 9));
  const std::vector<Tensor> second = testing::run(e, testing::make_operands(e, DType::f32, 9));
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(bit_equal(first[k], second[k]));
}

// Writing over an operand gives what a fresh result would have held, whatever the target's strides and whatever else is read.
TEST_P(EveryExample, InPlaceEqualsOutOfPlace) {
  const Example& e = example();
  if (e.op->inplace.empty()) return;
  for (bool views : {false, true}) {
    std::vector<Tensor> operands = testing::make_operands(e, DType::f32, 4);
    const std::vector<Tensor> fresh = testing::run(e, operands);
    std::vector<int> over(fresh.size(), -1);
    for (const InplacePair& p : e.op->inplace)
      if (over[static_cast<std::size_t>(p.output)] < 0) over[static_cast<std::size_t>(p.output)] = p.input;
    for (std::size_t k = 0; k < fresh.size(); ++k)
      if (over[k] < 0 || operands[static_cast<std::size_t>(over[k])].type() != fresh[k].type()) return;
    if (views)
      for (Tensor& t : operands) t = testing::strided(t);
    apply_in_place(*e.op, operands, e.attrs(), {});
    for (std::size_t k = 0; k < fresh.size(); ++k)
      EXPECT_TRUE(bit_equal(operands[static_cast<std::size_t>(over[k])], fresh[k])) << (views ? "strided" : "dense") << ", result " << k;
  }
}

// Sizes of zero are legal where the op's rule allows them, and a TypeError elsewhere.
TEST_P(EveryExample, EmptyShapesDoNotCrash) {
  for (int dim = 0; dim < 4; ++dim) {
    Example e = example();
    for (testing::Operand& o : e.operands)
      if (dim < o.type.shape.rank) o.type.shape[dim] = 0;
    std::vector<Tensor> operands = testing::make_operands(e, DType::f32, 1);
    for (Tensor& t : operands)
      if (is_floating(t.dtype())) t.requires_grad(true);
    try {
      const Tensor y = testing::run(e, operands)[0];
      if (!y.requires_grad() || !differentiable(*e.op)) continue;
      backward(y, {.head = ones(y.shape(), y.dtype())});
      for (const Tensor& t : operands)
        EXPECT_TRUE(!t.grad().defined() || t.grad().type() == t.type());
    } catch (const TypeError&) {
    }
  }
}

TEST_P(EveryExample, AbstractOperandsGiveTheSameTypes) {
  const Example& e = example();
  std::vector<Tensor> abstract;
  const std::vector<Tensor> operands = testing::make_operands(e, DType::f32, 1);
  for (const Tensor& t : operands) abstract.push_back(abstract_tensor(t.type()));
  const AbstractMode mode;
  const std::vector<Tensor> known = testing::run(e, abstract);
  const AbstractMode real(false);
  const std::vector<Tensor> made = testing::run(e, operands);
  ASSERT_EQ(known.size(), made.size());
  for (std::size_t k = 0; k < made.size(); ++k) {
    EXPECT_TRUE(known[k].abstract());
    EXPECT_EQ(known[k].type(), made[k].type());
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryExample, ::testing::ValuesIn(testing::all_examples()), testing::example_name);

// ---- what single examples cannot show ----

TEST(Gradient, EqualMaximaShareIt) {
  Tensor x = tensor({1, 3, 3, 2});
  x.requires_grad(true);
  backward(max(x));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0.5f, 0.5f, 0}));
}

TEST(Gradient, TieOfMaximumGoesToTheFirst) {
  Tensor a = tensor({1, 2}), b = tensor({1, 5});
  a.requires_grad(true);
  b.requires_grad(true);
  backward(sum(maximum(a, b)));
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{1, 0}));
  EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(Gradient, SumsOverBroadcastDimensions) {
  Tensor row = tensor({1, 2, 3}), number = scalar(2);
  row.requires_grad(true);
  number.requires_grad(true);
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  backward(sum(mul(add(x, row), number)));
  EXPECT_EQ(row.grad().to_vector<float>(), (std::vector<float>{4, 4, 4}));
  EXPECT_EQ(number.grad().item(), 33);  // sum of x, 21, plus twice that of row, 12
  EXPECT_EQ(number.grad().rank(), 0);
}

TEST(Gradient, PassesThroughPromotion) {
  Tensor x = tensor({1, 2});
  x.requires_grad(true);
  const Tensor y = from_bytes({DType::f64, {2}}, std::vector<double>{3, 4}.data());
  backward(sum(mul(x, y)));
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace tapedeck
