// Tests the gradient of every op against central differences in f64. The differences use all floating results of the op
// together.
#include <tapedeck/tests/engine/differences.h>

#include <tapedeck/tests/engine/messages.h>

#include <cstring>
#include <set>

namespace tapedeck::testing {
namespace {

std::vector<Tensor> gradients_of(const Example& e, const std::vector<Tensor>& operands, const std::vector<Tensor>& heads,
                                 unsigned wanted) {
  std::vector<Tensor> xs = leaves(operands, wanted);
  const Tensor loss = loss_of(run(e, xs), heads);
  if (loss.defined()) backward(loss);
  std::vector<Tensor> gradients;
  for (const Tensor& x : xs) gradients.push_back(x.grad());
  return gradients;
}

bool has_f64(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    if (t.dtype() == DType::f64) return true;
  return false;
}

// True if differences can test this example: the op has a vjp, and f64 operands and results.
bool checkable(const Example& e) {
  return differentiable(*e.op) && has_f64(make_operands(e, DType::f64, 1)) && has_f64(run(e, make_operands(e, DType::f64, 1)));
}

TEST(AllOpsGradient, IsThatOfCentralDifferences) {
  for_every_example([](const Example& e) {
    if (!checkable(e)) return;
    for (std::uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const std::vector<Tensor> operands = make_operands(e, DType::f64, seed);
      const std::vector<Tensor> heads = random_heads(run(e, operands), random);
      const std::vector<Tensor> gradients = gradients_of(e, operands, heads, ~0u);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].dtype() != DType::f64) continue;
        if (gradients[i].defined()) {
          ASSERT_EQ(gradients[i].type(), operands[i].type()) << "operand " << i;
        }
        const std::vector<double> direction = random_numbers(operands[i].numel(), random);
        const double numeric = central_difference(operands[i], direction, [&](const Tensor& x) {
          std::vector<Tensor> moved = operands;
          moved[i] = x;
          return weighed(e, moved, heads);
        });
        expect_same_slope(along(gradients[i], direction), numeric, 1e-6, "operand " + std::to_string(i));
      }
    }
  });
}

// Ops whose examples cannot be tested by differences, with the reasons.
struct Unchecked {
  const char* op;
  const char* reason;
};
constexpr Unchecked kUnchecked[] = {{"cast", "an f32 result is too coarse for differences; gradient_test has its gradient"}};

TEST(AllOpsGradient, EveryVjpIsChecked) {
  for_every_op([](const Op& op) {
    if (!differentiable(op) || op.n_regions > 0)
      return;  // tests/capture compares control flow with ordinary loops and branches
    for (const Unchecked& u : kUnchecked)
      if (std::string(u.op) == op.name) return;
    bool checked = false;
    for (const char* text : op.examples) {
      const Example e = parse_example(op, text);
      std::int64_t n = 0;
      for (const Tensor& y : run(e, make_operands(e, DType::f64, 1))) n += y.numel();
      checked = checked || (n > 0 && checkable(e));
    }
    EXPECT_TRUE(checked) << "has a vjp, and no example with elements from floating operands to floating results";
  });
}

TEST(AllOpsGradient, DoesNotDependOnWhichOthersAreWanted) {
  for_every_example([](const Example& e) {
    if (!checkable(e)) return;
    std::mt19937_64 random(5);
    const std::vector<Tensor> operands = make_operands(e, DType::f64, 5);
    const std::vector<Tensor> heads = random_heads(run(e, operands), random);
    const std::vector<Tensor> all = gradients_of(e, operands, heads, ~0u);
    for (std::size_t i = 0; i < std::min<std::size_t>(operands.size(), 31); ++i) {
      const std::vector<Tensor> alone = gradients_of(e, operands, heads, 1u << i);
      ASSERT_EQ(alone[i].defined(), all[i].defined()) << "operand " << i;
      if (alone[i].defined()) {
        EXPECT_TRUE(bit_equal(alone[i], all[i])) << "operand " << i;
      }
      for (std::size_t k = 0; k < operands.size(); ++k) EXPECT_TRUE(k == i || !alone[k].defined()) << "operand " << k;
    }
  });
}

// Tests ops with several results with a head on one result at a time.
TEST(AllOpsGradient, OfOneResultAmongSeveral) {
  for_every_example([](const Example& e) {
    if (!checkable(e)) return;
    std::mt19937_64 random(6);
    const std::vector<Tensor> operands = make_operands(e, DType::f64, 6), results = run(e, operands);
    if (results.size() < 2) return;
    const std::vector<Tensor> heads = random_heads(results, random);
    for (std::size_t k = 0; k < results.size(); ++k) {
      std::vector<Tensor> one(results.size());
      one[k] = heads[k];
      const std::vector<Tensor> gradients = gradients_of(e, operands, one, ~0u);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].dtype() != DType::f64) continue;
        const std::vector<double> direction = random_numbers(operands[i].numel(), random);
        const double numeric = central_difference(operands[i], direction, [&](const Tensor& x) {
          std::vector<Tensor> moved = operands;
          moved[i] = x;
          return weighed(e, moved, one);
        });
        expect_same_slope(along(gradients[i], direction), numeric, 1e-6,
                          "result " + std::to_string(k) + ", operand " + std::to_string(i));
      }
    }
  });
}

// If an op has neither a vjp nor kNoGradient, the error names the op. With kNoGradient, results have no history, and asking
// is no error.
TEST(AllOpsGradient, OpsWithoutOneSaySo) {
  for_every_example([](const Example& e) {
    if (e.op->vjp) return;
    std::vector<Tensor> operands = make_operands(e, DType::f32, 1);
    bool any = false;
    for (Tensor& t : operands)
      if (is_floating(t.dtype())) t.requires_grad(true), any = true;
    if (!any) return;
    for (const Tensor& y : run(e, operands)) {
      if (e.op->is(kNoGradient)) {
        EXPECT_FALSE(y.requires_grad());
      } else if (is_floating(y.dtype())) {
        EXPECT_MENTIONS(message_of<GradientError>([&] { backward(sum(y)); }), std::string("'") + e.op->name + "'");
      }
    }
  });
}

// The f32 gradient has the dtype of the operand and equals the f64 gradient up to rounding.
TEST(AllOpsGradient, SinglePrecisionFollowsDouble) {
  for_every_example([](const Example& e) {
    if (!checkable(e)) return;
    std::vector<Tensor> singles = make_operands(e, DType::f32, 7), doubles;
    for (const Tensor& t : singles) doubles.push_back(t.dtype() == DType::f32 ? cast(t, DType::f64) : t);
    auto of_sums = [&](std::vector<Tensor> xs) {
      for (Tensor& x : xs)
        if (is_floating(x.dtype())) x.requires_grad(true);
      Tensor loss;
      for (const Tensor& y : run(e, xs)) {
        if (!y.requires_grad()) continue;
        const Tensor piece = cast(sum(y), DType::f64);
        loss = loss.defined() ? loss + piece : piece;
      }
      if (loss.defined()) backward(loss);
      std::vector<Tensor> gradients;
      for (const Tensor& x : xs) gradients.push_back(x.grad());
      return gradients;
    };
    const std::vector<Tensor> f = of_sums(singles), d = of_sums(doubles);
    for (std::size_t i = 0; i < f.size(); ++i) {
      ASSERT_EQ(f[i].defined(), d[i].defined()) << "operand " << i;
      if (!f[i].defined()) continue;
      EXPECT_EQ(f[i].type(), singles[i].type()) << "operand " << i;
      const std::vector<double> got = elements(f[i]), expected = elements(d[i]);
      double largest = 1;
      for (double v : expected) largest = std::max(largest, std::fabs(v));
      for (std::size_t k = 0; k < got.size(); ++k)
        EXPECT_NEAR(got[k], expected[k], 1e-4 * largest) << "operand " << i << ", element " << k;
    }
  });
}

}  // namespace
}  // namespace tapedeck::testing
