// Tests that functions along an axis accept a 0-d tensor and the axes 0 and -1, as PyTorch does, with gradients.
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <cmath>
#include <functional>

namespace tapedeck {
namespace {

using Function = std::function<Tensor(const Tensor&, std::int64_t)>;

struct FunctionAtPoint {
  const char* name;
  Function f;
  double result, gradient;  // at 2.5; NaN: the result is an integer
};

const double kNoGradient = std::nan("");
const FunctionAtPoint kCases[] = {
    {"softmax", [](const Tensor& x, std::int64_t d) { return softmax(x, d); }, 1, 0},
    {"log_softmax", [](const Tensor& x, std::int64_t d) { return log_softmax(x, d); }, 0, 0},
    {"sum", [](const Tensor& x, std::int64_t d) { return sum(x, {d}); }, 2.5, 1},
    {"mean", [](const Tensor& x, std::int64_t d) { return mean(x, {d}); }, 2.5, 1},
    {"max", [](const Tensor& x, std::int64_t d) { return max(x, {d}); }, 2.5, 1},
    {"argmax", [](const Tensor& x, std::int64_t d) { return argmax(x, d); }, 0, kNoGradient},
    {"argmin", [](const Tensor& x, std::int64_t d) { return argmin(x, d); }, 0, kNoGradient},
    {"sort", [](const Tensor& x, std::int64_t d) { return sort(x, d).first; }, 2.5, 1},
    {"sort's order", [](const Tensor& x, std::int64_t d) { return sort(x, d).second; }, 0, kNoGradient},
    {"argsort", [](const Tensor& x, std::int64_t d) { return argsort(x, d); }, 0, kNoGradient},
    {"topk", [](const Tensor& x, std::int64_t d) { return topk(x, 1, d).first; }, 2.5, 1},
    {"kthvalue", [](const Tensor& x, std::int64_t d) { return kthvalue(x, 1, d).first; }, 2.5, 1},
    {"cumsum", [](const Tensor& x, std::int64_t d) { return cumsum(x, d); }, 2.5, 1},
    {"cumprod", [](const Tensor& x, std::int64_t d) { return cumprod(x, d); }, 2.5, 1},
    {"cummax", [](const Tensor& x, std::int64_t d) { return cummax(x, d).first; }, 2.5, 1},
    {"logcumsumexp", [](const Tensor& x, std::int64_t d) { return logcumsumexp(x, d); }, 2.5, 1},
};

TEST(Points, FunctionsAlongAnAxisTakeThem) {
  for (const FunctionAtPoint& c : kCases)
    for (const std::int64_t axis : {0, -1}) {
      SCOPED_TRACE(c.name);
      Tensor x = scalar(2.5);
      x.requires_grad(true);
      const Tensor y = c.f(x, axis);
      EXPECT_EQ(y.rank(), 0);
      EXPECT_EQ(y.item(), c.result);
      if (std::isnan(c.gradient)) continue;
      EXPECT_EQ(gradients({y}, {x})[0].item(), c.gradient);
    }
}

TEST(Points, OtherAxesAreRefused) {
  for (const FunctionAtPoint& c : kCases)
    for (const std::int64_t axis : {1, -2}) {
      SCOPED_TRACE(c.name);
      testing::message_of<TypeError>([&] { c.f(scalar(2.5), axis); });
    }
}

}  // namespace
}  // namespace tapedeck
