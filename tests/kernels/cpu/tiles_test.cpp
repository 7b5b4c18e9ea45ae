// Tests chains of elementwise kernels that run tile by tile. The oracle runs the kernels one after the other on whole arrays.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs/functions.h>
#include <tapedeck/kernels/cpu/elementwise/tiles.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>

#include <gtest/gtest.h>

#include <string>

namespace tapedeck::kernels::cpu {
void add_n(const KernelCall& call);
void clamp(const KernelCall& call);
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
using TileStep = cpu::TileProgram::Step;

TileStep tile_step(Kernel kernel, DType dtype, std::vector<std::int32_t> operands, const void* attrs = nullptr) {
  TileStep step;
  step.kernel = kernel;
  step.dtype = dtype;
  step.operands = std::move(operands);
  step.attrs = attrs;
  return step;
}

// Runs the steps as one chain and returns its results and its fault.
Outcome run_as_chain(const std::vector<TileStep>& steps, const std::vector<std::int32_t>& results,
                     const std::vector<Array>& operands, std::vector<Array>* made) {
  cpu::TileProgram p;
  p.n_operands = static_cast<std::int32_t>(operands.size());
  p.steps = steps;
  p.results = results;
  cpu::prepare_tiles(&p);
  const Sizes sizes(operands[0].view.sizes, operands[0].view.sizes + operands[0].view.rank);
  for (std::int32_t v : results) made->push_back(make_array(steps[v - p.n_operands].dtype, sizes));
  return run_call([&](const KernelCall& call) { cpu::run_tiles(p, call); }, operands, *made);
}

// All values of the chain: the operands, then the result of each step.
std::vector<Array> run_step_by_step(const std::vector<TileStep>& steps, const std::vector<Array>& operands) {
  std::vector<Array> values = operands;
  const Sizes sizes(operands[0].view.sizes, operands[0].view.sizes + operands[0].view.rank);
  for (const TileStep& step : steps) {
    std::vector<Array> in;
    for (std::int32_t v : step.operands) in.push_back(values[v]);
    const Array out = make_array(step.dtype, sizes);
    run(step.kernel, in, {out}, step.attrs);
    values.push_back(out);
  }
  return values;
}

// Values 0, 1 and 2 are operands. The chain holds kernels of one, two and three operands, one with attributes, one that is not
// a single loop (add_n), truth values, and a conversion to a wider type.
const ClampAttrs kBoundsOfChain = {-1.5, 0.75};

std::vector<TileStep> chain_of_many_kinds() {
  return {
      tile_step(cpu::clamp, DType::f32, {0}, &kBoundsOfChain),  // 3
      tile_step(cpu::tanh, DType::f32, {1}),                    // 4
      tile_step(cpu::add_n, DType::f32, {3, 4, 2, 0}),          // 5
      tile_step(cpu::greater, DType::boolean, {5, 2}),          // 6
      tile_step(cpu::where, DType::f32, {6, 5, 1}),             // 7
      tile_step(cpu::cast, DType::f64, {7}),                    // 8
      tile_step(cpu::square, DType::f64, {8}),                  // 9
  };
}

TEST(Tiles, GiveTheBitsOfTheKernelsOneByOne) {
  Random random(5);
  for (std::int64_t rows : {1, 3, 70}) {
    const Sizes sizes = {rows, 37};
    const Array dense = random_array(random, DType::f32, sizes, -3, 3);
    const Array turned = permuted(random_array(random, DType::f32, {37, rows}, -3, 3), {1, 0});
    const Array one = broadcast(random_array(random, DType::f32, {1}, -3, 3), sizes);
    const Array row = broadcast(random_array(random, DType::f32, {37}, -3, 3), sizes);
    for (const Array& second : {dense, turned, one, row})
      for (const Array& third : {turned, one, row}) {
        const std::vector<Array> operands = {dense, second, third};
        const std::vector<Array> expected = run_step_by_step(chain_of_many_kinds(), operands);
        std::vector<Array> made;
        const Outcome outcome = run_as_chain(chain_of_many_kinds(), {4, 6, 9}, operands, &made);
        EXPECT_EQ(outcome.fault, nullptr);
        EXPECT_TRUE(same_bits(made[0], expected[4])) << rows << " rows";
        EXPECT_TRUE(same_bits(made[1], expected[6])) << rows << " rows";
        EXPECT_TRUE(same_bits(made[2], expected[9])) << rows << " rows";
      }
  }
}

// The functor of an integer division holds the place for the fault, which is another one in each call.
TEST(Tiles, ReportFaultsOfTheCallAtHand) {
  const std::vector<TileStep> steps = {tile_step(cpu::div, DType::i32, {0, 1}), tile_step(cpu::neg, DType::i32, {2})};
  std::vector<double> ones(2000, 1.0), with_zero(2000, 1.0);
  with_zero[1999] = 0;
  const Array a = array_of(DType::i32, {2000}, ones);
  std::vector<Array> made;
  for (int call = 0; call < 2; ++call) {
    const Outcome fails = run_as_chain(steps, {3}, {a, array_of(DType::i32, {2000}, with_zero)}, &made);
    ASSERT_NE(fails.fault, nullptr);
    EXPECT_EQ(std::string(fails.fault), "integer division by zero");
    made.clear();
    EXPECT_EQ(run_as_chain(steps, {3}, {a, a}, &made).fault, nullptr);
    EXPECT_EQ(made[0].get(1999), -1);
    made.clear();
  }
}

// ---- loops that are written down ----

cpu::BoundLoop loop_of(Kernel kernel, int n_inputs, KernelFault* fault, const void* attrs = nullptr) {
  cpu::BoundLoop loop;
  loop.loops = 0;
  std::vector<View> in(static_cast<std::size_t>(n_inputs), make_array(DType::f32, {0}).view);
  const View out = make_array(DType::f32, {0}).view;
  KernelCall call;
  call.inputs = in.data();
  call.outputs = &out;
  call.n_inputs = n_inputs;
  call.n_outputs = cpu::kBindLoop;
  call.attrs = attrs;
  call.workspace = &loop;
  call.fault = fault;
  kernel(call);
  return loop;
}

TEST(BoundLoops, HoldTheFunctorWithItsAttributes) {
  KernelFault fault;
  const ClampAttrs bounds = {0, 6};
  const cpu::BoundLoop loop = loop_of(cpu::clamp, 1, &fault, &bounds);
  ASSERT_EQ(loop.loops, 1);
  float in[] = {-1, 2, 7}, out[3];
  char* const ptr[] = {reinterpret_cast<char*>(out), reinterpret_cast<char*>(in)};
  const std::int64_t strides[] = {4, 4};
  loop.body(loop.functor, ptr, strides, 3);
  EXPECT_EQ(std::vector<float>(out, out + 3), (std::vector<float>{0, 2, 6}));
}

TEST(BoundLoops, AreNotMadeOfOtherKernels) {
  KernelFault fault;
  EXPECT_EQ(loop_of(cpu::add_n, 4, &fault).loops, 0);
  EXPECT_EQ(fault.what.load(), nullptr);
}

}  // namespace
}  // namespace tapedeck::testing
