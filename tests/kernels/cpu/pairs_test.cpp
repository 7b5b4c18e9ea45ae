// Tests kernels that do two elementwise steps at once, and chains that use them. The oracle runs the two kernels one after the
// other, with the value between them in memory.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/cpu/elementwise/pairs.h>
#include <tapedeck/kernels/cpu/elementwise/tiles.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;

constexpr Kernel kOfPairs[] = {cpu::add, cpu::sub, cpu::mul, cpu::maximum, cpu::minimum};

// Numbers near and far from zero, zeros of both signs, infinities, a NaN and a number without a normal form.
Array pair_operand(Random& random, std::int64_t n) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, inf, -inf, -std::nanf(""), 1e-42f, 3e38f, 1.0f};
  const Array a = random_array(random, DType::f32, {n}, -4, 4);
  for (std::int64_t i = 0; i < n; ++i)
    if (random() % 4 == 0) a.at<float>(i) = special[random() % 8];
  return a;
}

// Bit k of `repeated` makes operand k one element.
std::vector<Array> pair_operands(Random& random, std::int64_t n, unsigned repeated) {
  std::vector<Array> operands;
  for (unsigned k = 0; k < 3; ++k)
    operands.push_back(repeated >> k & 1u ? broadcast(pair_operand(random, 1), {n}) : pair_operand(random, n));
  return operands;
}

Array one_after_the_other(Kernel first, Kernel second, const std::vector<Array>& operands) {
  const Sizes sizes = {operands[0].numel()};
  const Array between = make_array(DType::f32, sizes), out = make_array(DType::f32, sizes);
  run(first, {operands[0], operands[1]}, {between});
  run(second, {between, operands[2]}, {out});
  return out;
}

TEST(Pairs, HaveTheBitsOfTheirKernels) {
  Random random(7);
  for (Kernel first : kOfPairs)
    for (Kernel second : kOfPairs)
      for (unsigned repeated = 0; repeated < 8; ++repeated)
        for (std::int64_t n : {1, 7, 64, 1003}) {
          const Kernel both = cpu::pair_kernel(first, second);
          ASSERT_NE(both, nullptr);
          const std::vector<Array> operands = pair_operands(random, n, repeated);
          const Array out = make_array(DType::f32, {n});
          run(both, operands, {out});
          EXPECT_TRUE(same_bits(out, one_after_the_other(first, second, operands))) << n << " elements, pattern " << repeated;
        }
}

TEST(Pairs, AreOnlyThoseOfTheTable) {
  EXPECT_EQ(cpu::pair_kernel(cpu::div, cpu::add), nullptr);
  EXPECT_EQ(cpu::pair_kernel(cpu::add, cpu::exp), nullptr);
}

// ---- chains ----

cpu::TileProgram::Step f32_step(Kernel kernel, std::vector<std::int32_t> operands) {
  cpu::TileProgram::Step step;
  step.kernel = kernel;
  step.operands = std::move(operands);
  return step;
}

std::int64_t joined_steps(const cpu::TileProgram& p) {
  return std::count_if(p.steps.begin(), p.steps.end(), [](const auto& step) { return step.kernel == nullptr; });
}

// Values 0, 1 and 2 are operands; 3 is a product, 4 reads it.
cpu::TileProgram product_and(Kernel second, std::vector<std::int32_t> operands, std::vector<std::int32_t> results) {
  cpu::TileProgram p;
  p.n_operands = 3;
  p.steps = {f32_step(cpu::mul, {0, 1}), f32_step(second, std::move(operands))};
  p.results = std::move(results);
  cpu::prepare_tiles(&p);
  return p;
}

TEST(Pairs, AreJoinedWhereNothingElseReadsTheFirstResult) {
  EXPECT_EQ(joined_steps(product_and(cpu::add, {3, 2}, {4})), 1);
  EXPECT_EQ(joined_steps(product_and(cpu::add, {2, 3}, {4})), 0) << "the product is the second operand";
  EXPECT_EQ(joined_steps(product_and(cpu::add, {3, 3}, {4})), 0) << "the product is read twice";
  EXPECT_EQ(joined_steps(product_and(cpu::add, {3, 2}, {3, 4})), 0) << "the product is a result";
  EXPECT_EQ(joined_steps(product_and(cpu::div, {3, 2}, {4})), 0) << "there is no kernel for both";
}

TEST(Pairs, GiveTheChainItsBits) {
  Random random(11);
  constexpr std::int64_t n = 2500;  // some tiles
  for (unsigned repeated = 0; repeated < 8; ++repeated) {
    const std::vector<Array> operands = pair_operands(random, n, repeated);
    const Array out = make_array(DType::f32, {n});
    std::vector<View> inputs;
    for (const Array& a : operands) inputs.push_back(a.view);
    KernelFault fault;
    KernelCall call;
    call.inputs = inputs.data();
    call.outputs = &out.view;
    call.n_inputs = 3;
    call.n_outputs = 1;
    call.fault = &fault;
    cpu::run_tiles(product_and(cpu::sub, {3, 2}, {4}), call);
    EXPECT_TRUE(same_bits(out, one_after_the_other(cpu::mul, cpu::sub, operands))) << "pattern " << repeated;
  }
}

}  // namespace
}  // namespace tapedeck::testing
