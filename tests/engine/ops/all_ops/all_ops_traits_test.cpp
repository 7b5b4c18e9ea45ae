// Traits and rules that passes rely on, held against the results of the examples.
#include <tapedeck/tests/engine/all_ops.h>

#include <algorithm>

namespace tapedeck::testing {
namespace {

TEST(AllOpsTraits, ResultsAreWhatTheTraitsSay) {
  for_every_example([](const Example& e) {
    const Op& op = *e.op;
    if (!op.is(kCopy) && !op.is(kConversion) && !op.is(kBroadcast) && !op.uniform) return;
    const std::vector<Tensor> operands = make_operands(e, DType::f32, 3);
    const Tensor result = run(e, operands)[0];
    if (op.uniform) {
      const std::vector<double> found = elements(result);
      const double number = op.uniform(e.attrs());
      EXPECT_TRUE(std::all_of(found.begin(), found.end(), [&](double x) { return x == number; })) << op.name;
      return;
    }
    const Tensor& operand = operands[0];
    if (op.is(kCopy)) {
      EXPECT_EQ(result.type(), operand.type()) << op.name;
      expect_equal_bits({result}, {operand}, op.name);
    }
    if (op.is(kConversion)) {
      EXPECT_EQ(result.shape(), operand.shape()) << op.name;
      expect_equal_bits({result}, {cast(operand, result.dtype())}, op.name);
    }
    if (op.is(kBroadcast)) {
      EXPECT_EQ(result.dtype(), operand.dtype()) << op.name;
      const Tensor yes = full(result.shape(), 1, DType::boolean);
      expect_equal_bits({copy(result)}, {where(yes, operand, operand)}, op.name);
    }
  });
}

}  // namespace
}  // namespace tapedeck::testing
