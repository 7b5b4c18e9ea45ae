// Convolution by cuDNN, with a fake of the library: the descriptors describe the right convolution, the choice among engines,
// and every way to fail.
#include <tapedeck/kernels/cuda/convolution/dnn_choice.h>
#include <tapedeck/tests/kernels/conv3d.h>
#include <tapedeck/tests/kernels/cuda/convolution/fake_dnn.h>
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace cuda = kernels::cuda;
namespace dnn = kernels::cuda::dnn;
using cpu::ConvPass;

class DnnConvolutionTest : public ::testing::Test {
 protected:
  void TearDown() override {
    convolutions_.reset();
    EXPECT_EQ(fake_.live_descriptors, 0);
    EXPECT_EQ(fake_.handles, 0);
    EXPECT_EQ(fake_.misuse, "");
  }
  cuda::DnnConvolutions& convolutions() { return *convolutions_; }

  FakeDnn& fake_ = new_fake_dnn();
  const cuda::DnnApi table_ = fake_dnn_table();
  const cuda::ScopedFake<cuda::DnnApi> scope_{table_};
  std::unique_ptr<cuda::DnnConvolutions> convolutions_ = std::make_unique<cuda::DnnConvolutions>();
};

struct DnnConvCase {
  Sizes x, w;
  ConvAttrs attrs;
};

cuda::DnnConvolution problem_of(const DnnConvCase& c, ConvPass pass) {
  cuda::DnnConvolution p;
  p.pass = pass;
  p.dims = static_cast<int>(c.x.size()) - 2;
  p.shape = cpu::conv_shape(p.dims, c.x.data(), c.w.data(), c.attrs);
  p.strides = cpu::packed_images(p.shape);
  return p;
}

const DnnConvCase kSmall = {{2, 3, 5, 6}, {4, 3, 3, 3}, {{1}, {1}, {1}, 1}};

// x, w and y of a case, and memory of a workspace.
struct Operands {
  Array x, w, y;
  std::vector<std::uint64_t> workspace = std::vector<std::uint64_t>(1024);

  explicit Operands(const DnnConvCase& c) {
    Random random(9);
    const cuda::DnnConvolution p = problem_of(c, ConvPass::forward);
    Sizes sizes = {c.x[0], c.w[0]};
    for (int i = 0; i < p.dims; ++i) sizes.push_back(p.shape.out(static_cast<std::size_t>(3 - p.dims + i)));
    x = random_array(random, DType::f32, c.x), w = random_array(random, DType::f32, c.w);
    y = random_array(random, DType::f32, sizes);
  }
  cuda::DnnOperands call() {
    return {x.view.data, w.view.data, y.view.data, workspace.data(), workspace.size() * 8, &workspace, true};
  }
};

// The result of the pass by the CPU kernel.
Array computed_by_cpu(const DnnConvCase& c, ConvPass pass, const Operands& o) {
  const bool flat = c.x.size() == 4;
  ConvInputGradAttrs input{c.attrs.stride, c.attrs.padding, c.attrs.dilation, c.attrs.groups, {}};
  ConvWeightGradAttrs weight{c.attrs.stride, c.attrs.padding, c.attrs.dilation, c.attrs.groups, {}};
  for (std::size_t i = 2; i < c.x.size(); ++i) input.size.push_back(c.x[i]), weight.size.push_back(c.w[i]);
  const auto result_as = [&](const Array& like) {
    return make_array(DType::f32, Sizes(like.view.sizes, like.view.sizes + like.view.rank));
  };
  const Array result = result_as(pass == ConvPass::forward ? o.y : pass == ConvPass::input_grad ? o.x : o.w);
  if (pass == ConvPass::forward) run(flat ? &cpu::conv2d : &cpu::conv3d, {o.x, o.w}, {result}, &c.attrs);
  if (pass == ConvPass::input_grad) run(flat ? &cpu::conv2d_input_grad : &cpu::conv3d_input_grad, {o.y, o.w}, {result}, &input);
  if (pass == ConvPass::weight_grad)
    run(flat ? &cpu::conv2d_weight_grad : &cpu::conv3d_weight_grad, {o.y, o.x}, {result}, &weight);
  return result;
}

// The fake computes from the descriptors alone, with the same CPU kernels, so that the bits must be equal.
TEST_F(DnnConvolutionTest, DescribesEveryPass) {
  fake_.engines = {{{}, {}, 64}};
  const DnnConvCase cases[] = {
      kSmall,
      {{2, 4, 6, 9}, {6, 2, 3, 3}, {{2}, {1, 0, 0, 2}, {1, 2}, 2}},
      {{1, 2, 7, 9}, {3, 2, 3, 2}, {{2, 3}, {1, 0}, {1}, 1}},
      {{1, 4, 5, 4, 6}, {2, 2, 2, 3, 2}, {{2, 1, 2}, {0, 1, 1, 1, 1, 0}, {2, 1, 1}, 2}},
  };
  for (const DnnConvCase& c : cases)
    for (const ConvPass pass : {ConvPass::forward, ConvPass::input_grad, ConvPass::weight_grad}) {
      Operands o(c);
      const Array expected = computed_by_cpu(c, pass, o);
      EXPECT_EQ(convolutions().workspace(problem_of(c, pass)), 64);
      ASSERT_TRUE(convolutions().run(problem_of(c, pass), o.call())) << convolutions().last_failure();
      const Array& result = pass == ConvPass::forward ? o.y : pass == ConvPass::input_grad ? o.x : o.w;
      EXPECT_TRUE(same_bits(result, expected)) << static_cast<int>(pass) << " of " << ::testing::PrintToString(c.x);
      EXPECT_EQ(fake_.stream, &o.workspace);
      EXPECT_EQ(fake_.workspace, o.workspace.data());
    }
}

TEST_F(DnnConvolutionTest, TakesImagesWithGaps) {
  fake_.engines = {{}};
  Operands o(kSmall);
  const Array expected = computed_by_cpu(kSmall, ConvPass::forward, o);
  Array x = make_array(DType::f32, {2, 110});
  for (std::int64_t i = 0; i < o.x.numel(); ++i) x.set(i / 90 * 110 + i % 90, o.x.get(i));
  cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  problem.strides.in = 110;
  cuda::DnnOperands call = o.call();
  call.x = x.view.data;
  ASSERT_TRUE(convolutions().run(problem, call));
  EXPECT_TRUE(same_bits(o.y, expected));
}

TEST_F(DnnConvolutionTest, ChoosesADeterministicEngineOfThePrecision) {
  const auto chosen = [&](DType dtype, bool tf32) {
    cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::weight_grad);
    problem.dtype = dtype, problem.tf32 = tf32;
    return convolutions().workspace(problem);  // each engine wants another workspace
  };
  fake_.engines = {{{dnn::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, {}, 1},
                   {{}, {dnn::CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, 2},
                   {{}, {}, std::int64_t{1} << 40},
                   {{}, {}, 4, 3000},
                   {{dnn::CUDNN_NUMERICAL_NOTE_TENSOR_CORE, dnn::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, {}, 5},
                   {{dnn::CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, {}, 6},
                   {{}, {}, 7}};
  EXPECT_EQ(chosen(DType::f32, false), 7);
  EXPECT_EQ(chosen(DType::f32, true), 5);
  EXPECT_EQ(chosen(DType::f16, false), 6);
  EXPECT_EQ(chosen(DType::bf16, false), 6);
  EXPECT_EQ(chosen(DType::f64, false), -1);
}

TEST_F(DnnConvolutionTest, TakesAnEngineThatCompilesAtRunTimeLast) {
  fake_.engines = {{{}, {dnn::CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, 2}};
  fake_.fallback_engines = {{{}, {}, 3}};
  EXPECT_EQ(convolutions().workspace(problem_of(kSmall, ConvPass::forward)), 3);
  fake_.fallback_engines.clear();
  EXPECT_EQ(convolutions().workspace(problem_of(kSmall, ConvPass::input_grad)), 2);
}

TEST_F(DnnConvolutionTest, ListsTheConfigurations) {
  fake_.engines = {{{dnn::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, {}, 1, 0, 0, 17, {}},
                   {{}, {dnn::CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, 2, 0, 0, 5, {{2, 30}, {14, 3}}}};
  fake_.fallback_engines = {{{dnn::CUDNN_NUMERICAL_NOTE_WINOGRAD}, {}, 3, 0, 0, 6, {}}};
  const cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  const auto proposed = convolutions().configurations(problem, dnn::CUDNN_HEUR_MODE_A);
  ASSERT_EQ(proposed.size(), 2u);
  EXPECT_EQ(proposed[0].engine, 17);
  EXPECT_FALSE(proposed[0].usable);
  EXPECT_FALSE(proposed[0].compiles_at_run_time());
  EXPECT_EQ(proposed[1].engine, 5);
  EXPECT_EQ(proposed[1].index, 1);
  EXPECT_TRUE(proposed[1].usable);
  EXPECT_TRUE(proposed[1].compiles_at_run_time());
  EXPECT_EQ(proposed[1].knobs, (std::vector<std::pair<int, std::int64_t>>{{2, 30}, {14, 3}}));
  const auto fallback = convolutions().configurations(problem, dnn::CUDNN_HEUR_MODE_FALLBACK);
  ASSERT_EQ(fallback.size(), 1u);
  EXPECT_EQ(fallback[0].mode, dnn::CUDNN_HEUR_MODE_FALLBACK);
  EXPECT_EQ(fallback[0].notes, std::vector<int>{dnn::CUDNN_NUMERICAL_NOTE_WINOGRAD});
}

TEST_F(DnnConvolutionTest, UsesTheConfigurationThatIsNamed) {
  fake_.engines = {{{}, {}, 8}, {{}, {}, 16}, {{}, {}, 24, 3000}};
  Operands o(kSmall);
  const cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  EXPECT_EQ(convolutions().workspace(problem), 8);
  EXPECT_EQ(convolutions().use(problem, dnn::CUDNN_HEUR_MODE_A, 1), 16);
  EXPECT_EQ(convolutions().workspace(problem), 16);
  ASSERT_TRUE(convolutions().run(problem, o.call()));
  EXPECT_EQ(fake_.engine, 1);
  EXPECT_EQ(convolutions().use(problem, dnn::CUDNN_HEUR_MODE_A, 2), -1);
  EXPECT_EQ(convolutions().use(problem, dnn::CUDNN_HEUR_MODE_A, 3), -1);
  EXPECT_EQ(convolutions().workspace(problem), 16) << "a refusal changes nothing";
}

// ---- the choice by shape ----

// A problem in f32 over square images, with windows of 3 x 3 or 1 x 1 that keep the size at a stride of 1.
cuda::DnnConvolution square_problem(ConvPass pass, std::int64_t batch, std::int64_t in, std::int64_t size, std::int64_t out,
                                    std::int64_t window, std::int64_t stride = 1) {
  const std::int64_t padding = window / 2;
  return problem_of({{batch, in, size, size}, {out, in, window, window}, {{stride}, {padding}, {1}, 1}}, pass);
}

// An engine whose workspace names it.
FakeEngine named_engine(std::int64_t index, std::int64_t workspace, std::int64_t tile = -1, std::int64_t index_mode = 0) {
  FakeEngine e;
  e.index = index, e.workspace = workspace;
  if (tile >= 0) e.knobs = {{2, tile}, {18, index_mode}};
  return e;
}

TEST_F(DnnConvolutionTest, ChoosesTheTileOfTheForwardPassByTheSizeOfTheResult) {
  fake_.engines = {named_engine(3, 8), named_engine(70, 16, 4, 1), named_engine(70, 24, 2), named_engine(70, 32, 12),
                   named_engine(70, 40, 4)};
  const auto chosen = [&](std::int64_t batch, std::int64_t in, std::int64_t size) {
    return convolutions().workspace(square_problem(ConvPass::forward, batch, in, size, in, 3));
  };
  EXPECT_EQ(chosen(32, 64, 8), 32);
  EXPECT_EQ(chosen(32, 64, 32), 40);
  EXPECT_EQ(chosen(16, 128, 28), 8) << "the Fourier transform";
  EXPECT_EQ(chosen(2, 128, 28), 32) << "has too few images for it";
  EXPECT_EQ(chosen(32, 128, 32), 40) << "does not fit its tile";
}

TEST_F(DnnConvolutionTest, PrefersOneEngineForTheInputGradientOfSmallPlanes) {
  fake_.engines = {named_engine(2, 8, 1), named_engine(2, 16, 2), named_engine(74, 24, 12)};
  const auto chosen = [&](std::int64_t size) {
    return convolutions().workspace(square_problem(ConvPass::input_grad, 32, 64, size, 64, 3));
  };
  EXPECT_EQ(chosen(2), 24);
  EXPECT_EQ(chosen(16), 8);
  fake_.engines.pop_back();
  EXPECT_EQ(chosen(4), 16);
}

TEST_F(DnnConvolutionTest, AsksTheFallbackWhereTheBestEngineIsMissing) {
  fake_.engines = {named_engine(70, 8, 12, 1), named_engine(70, 16, 2)};
  fake_.fallback_engines = {named_engine(1, 24), named_engine(70, 32, 12)};
  const cuda::DnnConvolution problem = square_problem(ConvPass::forward, 32, 512, 1, 512, 3);
  EXPECT_EQ(convolutions().workspace(problem), 32);
  convolutions_ = std::make_unique<cuda::DnnConvolutions>();
  fake_.fallback_engines[1].plan_status = 3000;
  EXPECT_EQ(convolutions().workspace(problem), 16);
}

TEST_F(DnnConvolutionTest, LeavesLongSumsOfWeightGradientsToOurOwnKernels) {
  fake_.engines = {named_engine(67, 8)};
  const auto workspace = [&](std::int64_t in, std::int64_t size, std::int64_t out, std::int64_t window, std::int64_t stride) {
    return convolutions().workspace(square_problem(ConvPass::weight_grad, 32, in, size, out, window, stride));
  };
  EXPECT_EQ(workspace(3, 32, 64, 7, 2), -1);
  EXPECT_EQ(convolutions().last_failure(), "cuDNN is slower than our own kernels");
  EXPECT_EQ(workspace(64, 8, 128, 3, 2), 8) << "the sums are short";
  EXPECT_EQ(workspace(512, 14, 512, 3, 1), 8) << "there are many weights";
  fake_.engines.push_back(named_engine(17, 16));
  EXPECT_EQ(workspace(64, 32, 64, 3, 1), 8) << "cuDNN has its engine for long sums, and orders them itself";
}

TEST_F(DnnConvolutionTest, KeepsTheOrderOfTheHeuristicForOtherTypes) {
  fake_.engines = {named_engine(1, 8), named_engine(70, 16, 12)};
  cuda::DnnConvolution problem = square_problem(ConvPass::forward, 32, 64, 8, 64, 3);
  problem.dtype = DType::bf16;
  EXPECT_EQ(convolutions().workspace(problem), 8);
  problem.dtype = DType::f32, problem.tf32 = true;
  EXPECT_EQ(convolutions().workspace(problem), 8);
  problem.tf32 = false;
  EXPECT_EQ(convolutions().workspace(problem), 16);
}

// ---- plans and failures ----

TEST_F(DnnConvolutionTest, PlansEachShapeOnce) {
  fake_.engines = {{}};
  Operands o(kSmall);
  const cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(convolutions().run(problem, o.call()));
  EXPECT_EQ(convolutions().workspace(problem), 0);
  EXPECT_EQ(fake_.graphs, 1);
  EXPECT_EQ(fake_.executions, 3);
  cuda::DnnConvolution other = problem;
  other.strides.out += 4;
  convolutions().workspace(other);
  EXPECT_EQ(fake_.graphs, 2);
}

TEST_F(DnnConvolutionTest, MakesNoPlanDuringACapture) {
  fake_.engines = {{}};
  Operands o(kSmall);
  cuda::DnnOperands call = o.call();
  call.may_plan = false;
  const cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  EXPECT_FALSE(convolutions().run(problem, call));
  EXPECT_EQ(fake_.graphs, 0);
  convolutions().workspace(problem);
  EXPECT_TRUE(convolutions().run(problem, call));
}

TEST_F(DnnConvolutionTest, LeavesShapesBeyondItsLimit) {
  fake_.engines = {{}};
  convolutions_ = std::make_unique<cuda::DnnConvolutions>(1);
  EXPECT_EQ(convolutions().workspace(problem_of(kSmall, ConvPass::forward)), 0);
  EXPECT_EQ(convolutions().workspace(problem_of(kSmall, ConvPass::input_grad)), -1);
  EXPECT_EQ(convolutions().workspace(problem_of(kSmall, ConvPass::forward)), 0);
}

TEST_F(DnnConvolutionTest, LeavesCallsThatDoNotFitThePlan) {
  fake_.engines = {{{}, {}, 128}};
  Operands o(kSmall);
  const cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  cuda::DnnOperands call = o.call();
  call.workspace_bytes = 127;
  EXPECT_FALSE(convolutions().run(problem, call));
  call = o.call();
  call.y = static_cast<char*>(call.y) + 8;
  EXPECT_FALSE(convolutions().run(problem, call));
  EXPECT_EQ(fake_.executions, 0);
  EXPECT_TRUE(convolutions().run(problem, o.call()));
}

TEST_F(DnnConvolutionTest, RemembersFailures) {
  Operands o(kSmall);
  const cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(convolutions().run(problem, o.call()));
  EXPECT_EQ(fake_.graphs, 1);
  EXPECT_EQ(convolutions().last_failure(), "cuDNN has no engine that fits");

  fake_.engines = {{{}, {}, 0, 0, 3000}};  // fails at the launch
  const cuda::DnnConvolution second = problem_of(kSmall, ConvPass::input_grad);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(convolutions().run(second, o.call()));
  EXPECT_EQ(fake_.executions, 1);
  EXPECT_EQ(convolutions().last_failure(), "cuDNN does not launch: NOT_SUPPORTED");
  EXPECT_EQ(convolutions().workspace(second), -1);
}

// Graphs that were captured before a launch failed still hold the plan.
TEST_F(DnnConvolutionTest, KeepsThePlanOfAFailedLaunch) {
  fake_.engines = {{{}, {}, 0, 0, 3000}};
  Operands o(kSmall);
  const cuda::DnnConvolution problem = problem_of(kSmall, ConvPass::forward);
  EXPECT_EQ(convolutions().workspace(problem), 0);
  const int descriptors = fake_.live_descriptors;
  EXPECT_FALSE(convolutions().run(problem, o.call()));
  EXPECT_EQ(fake_.live_descriptors, descriptors);
}

TEST_F(DnnConvolutionTest, DoesWithoutAHandle) {
  fake_.engines = {{}};
  fake_.create_status = 1001;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(convolutions().workspace(problem_of(kSmall, ConvPass::forward)), -1);
  EXPECT_EQ(fake_.graphs, 0);
  EXPECT_EQ(convolutions().last_failure(), "cuDNN does not start: OTHER");
}

TEST(DnnConvolution, EnvironmentTurnsItOff) {
  EXPECT_TRUE(cuda::dnn_is_wanted());
  EXPECT_FALSE(cuda::tf32_is_allowed());
  ::setenv("TAPEDECK_CUDA_CONV", "own", 1);
  ::setenv("TAPEDECK_TF32", "1", 1);
  EXPECT_FALSE(cuda::dnn_is_wanted());
  EXPECT_TRUE(cuda::tf32_is_allowed());
  ::unsetenv("TAPEDECK_CUDA_CONV");
  ::unsetenv("TAPEDECK_TF32");
}

}  // namespace
}  // namespace tapedeck::testing
