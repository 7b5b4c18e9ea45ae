// Convolution, its gradients and pooling against the definition as six nested loops in double.
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/conv.h>
#include <tapedeck/kernels/cpu/conv_plan.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

namespace tapedeck::kernels::cpu {
void PrintTo(const ConvShape& s, std::ostream* out) {
  *out << "x " << s.batch << "," << s.in_channels << "," << s.height << "," << s.width << " w " << s.out_channels << ","
       << s.kernel_height << "," << s.kernel_width << " stride " << s.stride_height << "," << s.stride_width << " pad "
       << s.pad_height << "," << s.pad_width;
}
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
using cpu::ConvShape;

constexpr unsigned kSeed = 4711;

// Calls f(x, w, y) with all triples of flat indices whose product belongs to the convolution.
template <class F>
void for_terms(const ConvShape& s, F&& f) {
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t o = 0; o < s.out_channels; ++o)
      for (std::int64_t r = 0; r < s.out_height(); ++r)
        for (std::int64_t c = 0; c < s.out_width(); ++c)
          for (std::int64_t i = 0; i < s.in_channels; ++i)
            for (std::int64_t kr = 0; kr < s.kernel_height; ++kr)
              for (std::int64_t kc = 0; kc < s.kernel_width; ++kc) {
                const std::int64_t row = r * s.stride_height + kr - s.pad_height, col = c * s.stride_width + kc - s.pad_width;
                if (row < 0 || row >= s.height || col < 0 || col >= s.width) continue;
                f(((n * s.in_channels + i) * s.height + row) * s.width + col,
                  ((o * s.in_channels + i) * s.kernel_height + kr) * s.kernel_width + kc,
                  ((n * s.out_channels + o) * s.out_height() + r) * s.out_width() + c);
              }
}

struct Operands {
  Array x, w, y;
  Operands(Random& random, DType dtype, const ConvShape& s)
      : x(random_array(random, dtype, {s.batch, s.in_channels, s.height, s.width})),
        w(random_array(random, dtype, {s.out_channels, s.in_channels, s.kernel_height, s.kernel_width})),
        y(random_array(random, dtype, {s.batch, s.out_channels, s.out_height(), s.out_width()})) {}
};

Array like(const Array& a) {
  const Array b = make_array(a.view.dtype, Sizes(a.view.sizes, a.view.sizes + a.view.rank));
  for (std::int64_t i = 0; i < b.numel(); ++i) b.set(i, 99);  // leftovers must not matter
  return b;
}

struct Results {
  Array y, dx, dw;
};

Results convolve(const Operands& in, const ConvShape& s, bool with_workspace = true) {
  const DType dtype = in.x.view.dtype;
  ConvAttrs forward;
  ConvInputGradAttrs input;
  ConvWeightGradAttrs weight;
  forward.stride = input.stride = weight.stride = {s.stride_height, s.stride_width};
  forward.padding = input.padding = weight.padding = {s.pad_height, s.pad_width};
  input.size = {s.height, s.width};
  weight.size = {s.kernel_height, s.kernel_width};
  const Results out{like(in.y), like(in.x), like(in.w)};
  const std::int64_t on = with_workspace;
  EXPECT_EQ(run(cpu::conv2d, {in.x, in.w}, {out.y}, &forward, on * cpu::conv2d_workspace(s, dtype)).fault, nullptr);
  EXPECT_EQ(run(cpu::conv2d_input_grad, {in.y, in.w}, {out.dx}, &input, on * cpu::conv2d_input_grad_workspace(s, dtype)).fault,
            nullptr);
  EXPECT_EQ(
      run(cpu::conv2d_weight_grad, {in.y, in.x}, {out.dw}, &weight, on * cpu::conv2d_weight_grad_workspace(s, dtype)).fault,
      nullptr);
  return out;
}

void expect_near(const Array& got, const std::vector<double>& expected, const std::vector<double>& size, double tolerance,
                 const char* what) {
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const auto u = static_cast<std::size_t>(i);
    ASSERT_NEAR(got.get(i), expected[u], size[u] * tolerance) << what << " element " << i;
  }
}

void expect_convolution(const Operands& in, const Results& out, const ConvShape& s) {
  const std::vector<double> in_x = values(in.x), in_w = values(in.w), in_y = values(in.y);
  const auto zeros = [](const Array& a) { return std::vector<double>(static_cast<std::size_t>(a.numel())); };
  std::vector<double> y = zeros(in.y), dx = zeros(in.x), dw = zeros(in.w), y_size = y, dx_size = dx, dw_size = dw;
  for_terms(s, [&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at) {
    const auto xi = static_cast<std::size_t>(x_at), wi = static_cast<std::size_t>(w_at), yi = static_cast<std::size_t>(y_at);
    const auto add = [](double& sum, double& size, double term) { sum += term, size += std::fabs(term); };
    add(y[yi], y_size[yi], in_x[xi] * in_w[wi]);
    add(dx[xi], dx_size[xi], in_y[yi] * in_w[wi]);
    add(dw[wi], dw_size[wi], in_y[yi] * in_x[xi]);
  });
  const double tolerance = in.x.view.dtype == DType::f32 ? 2e-6 : 1e-14;
  expect_near(out.y, y, y_size, tolerance, "y");
  expect_near(out.dx, dx, dx_size, tolerance, "dx");
  expect_near(out.dw, dw, dw_size, tolerance, "dw");
}

const ConvShape kShapes[] = {
    {2, 3, 8, 8, 5, 3, 3, 1, 1, 1, 1},    {64, 1, 8, 8, 16, 3, 3, 1, 1, 1, 1}, {13, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1},
    {37, 10, 9, 7, 13, 3, 3, 1, 1, 1, 1}, {3, 4, 11, 9, 6, 5, 3, 2, 1, 2, 0},  {1, 16, 12, 12, 32, 1, 1, 1, 1, 0, 0},
    {9, 32, 6, 6, 16, 3, 3, 2, 2, 1, 1},  {2, 2, 5, 5, 3, 5, 5, 1, 1, 4, 4},   {2, 3, 4, 4, 2, 4, 4, 1, 1, 0, 0},
    {9, 17, 8, 8, 33, 3, 3, 1, 1, 0, 0},  {1, 3, 30, 30, 8, 7, 7, 2, 2, 3, 3}, {4, 8, 7, 7, 8, 2, 2, 3, 3, 0, 0},
    {2, 1, 1, 40, 4, 1, 5, 1, 2, 0, 2},   {9, 64, 4, 4, 48, 3, 3, 1, 1, 1, 1},
};

class Conv : public ::testing::TestWithParam<ConvShape> {};

TEST_P(Conv, MatchesTheDefinition) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Operands in(random, dtype, GetParam());
    expect_convolution(in, convolve(in, GetParam()), GetParam());
  }
}

TEST_P(Conv, PlainLoopsMatchToo) {
  Random random(kSeed);
  const Operands in(random, DType::f32, GetParam());
  expect_convolution(in, convolve(in, GetParam(), false), GetParam());
}

TEST_P(Conv, ThreadsDoNotChangeTheBits) {
  Random random(kSeed);
  const Operands in(random, DType::f32, GetParam());
  Results one, two;
  with_threads(1, [&] { one = convolve(in, GetParam()); });
  with_threads(2, [&] { two = convolve(in, GetParam()); });
  EXPECT_TRUE(same_bits(one.y, two.y));
  EXPECT_TRUE(same_bits(one.dx, two.dx));
  EXPECT_TRUE(same_bits(one.dw, two.dw));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv, ::testing::ValuesIn(kShapes));

// The usual shapes go to oneDNN in the workspace that the rule gives; the plain loops would be a silent loss of speed. Which of
// the others it takes depends on the processor.
TEST(ConvWorkspace, IsEnoughForOneDnn) {
  Random random(kSeed);
  for (const ConvShape& s : kShapes) {
    if (s.kernel_height != 3 || s.stride_height != 1 || s.pad_height != 1) continue;
    const Operands in(random, DType::f32, s);
    const Results out{like(in.y), like(in.x), like(in.w)};
    std::vector<std::uint64_t> scratch(static_cast<std::size_t>(cpu::conv_workspace(cpu::ConvPass::weight_grad, s) +
                                                                cpu::conv_workspace(cpu::ConvPass::forward, s)) /
                                           8 +
                                       16);
    void* const workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    const auto runs = [&](cpu::ConvPass pass, const Array& a, const Array& b, const Array& to) {
      return cpu::convolve_onednn(pass, s, a.view.as<float>(), b.view.as<float>(), to.view.as<float>(), workspace,
                                  static_cast<std::size_t>(cpu::conv_workspace(pass, s)));
    };
    EXPECT_TRUE(runs(cpu::ConvPass::forward, in.x, in.w, out.y)) << ::testing::PrintToString(s);
    EXPECT_TRUE(runs(cpu::ConvPass::input_grad, in.y, in.w, out.dx)) << ::testing::PrintToString(s);
    EXPECT_TRUE(runs(cpu::ConvPass::weight_grad, in.y, in.x, out.dw)) << ::testing::PrintToString(s);
  }
}

TEST(ConvWorkspace, IsASmallPartOfTheActivations) {
  for (const std::int64_t channels : {16, 32, 64}) {
    const ConvShape s{64, channels, 16, 16, channels, 3, 3, 1, 1, 1, 1};
    const std::int64_t activation = s.batch * s.out_size() * 4;
    EXPECT_LE(cpu::conv2d_workspace(s, DType::f32), activation / 2);
    EXPECT_LE(cpu::conv2d_weight_grad_workspace(s, DType::f32), activation);
    EXPECT_EQ(cpu::conv2d_workspace(s, DType::f64), 0);
  }
}

TEST(ConvEdge, EmptyBatchAndNoChannels) {
  Random random(kSeed);
  const ConvShape no_images{0, 3, 5, 5, 4, 3, 3, 1, 1, 1, 1}, no_channels{2, 0, 5, 5, 4, 3, 3, 1, 1, 1, 1};
  for (const ConvShape& s : {no_images, no_channels}) {
    const Operands in(random, DType::f32, s);
    const Results out = convolve(in, s);
    for (const Array& a : {out.y, out.dx, out.dw})
      for (std::int64_t i = 0; i < a.numel(); ++i) EXPECT_EQ(a.get(i), 0);
  }
}

TEST(Pool, MatchesTheDefinition) {
  Random random(kSeed);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [window, stride] :
         {std::pair<Ints, Ints>{{2, 2}, {2, 2}}, {{3, 3}, {1, 1}}, {{3, 2}, {2, 1}}, {{1, 1}, {1, 1}}}) {
      PoolAttrs attrs;
      attrs.window = window;
      attrs.stride = stride;
      const std::int64_t h = 9, w = 8, oh = (h - window[0]) / stride[0] + 1, ow = (w - window[1]) / stride[1] + 1;
      const Array x = make_array(dtype, {3, 2, h, w}), dy = random_array(random, dtype, {3, 2, oh, ow});
      for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(random() % 5));  // many ties
      const Array y = like(dy), dx = like(x);
      run(cpu::max_pool2d, {x}, {y}, &attrs);
      run(cpu::max_pool2d_grad, {x, dy}, {dx}, &attrs);
      std::vector<double> expected(static_cast<std::size_t>(x.numel()));
      for (std::int64_t i = 0; i < y.numel(); ++i) {
        const std::int64_t plane = i / (oh * ow), row = i / ow % oh, col = i % ow;
        std::int64_t best = -1;
        for (std::int64_t r = 0; r < window[0]; ++r)
          for (std::int64_t c = 0; c < window[1]; ++c) {
            const std::int64_t at = (plane * h + row * stride[0] + r) * w + col * stride[1] + c;
            if (best < 0 || x.get(at) > x.get(best)) best = at;
          }
        ASSERT_EQ(y.get(i), x.get(best));
        expected[static_cast<std::size_t>(best)] += dy.get(i);
      }
      for (std::int64_t i = 0; i < x.numel(); ++i) ASSERT_NEAR(dx.get(i), expected[static_cast<std::size_t>(i)], 1e-5);
    }
}

TEST(Pool, NanAndNothing) {
  PoolAttrs attrs;
  const Array x = make_array(DType::f32, {1, 1, 2, 2}), y = make_array(DType::f32, {1, 1, 1, 1});
  x.set(2, NAN);
  run(cpu::max_pool2d, {x}, {y}, &attrs);
  EXPECT_TRUE(std::isnan(y.get(0)));
  const Array none = make_array(DType::f32, {0, 1, 2, 2}), none_out = make_array(DType::f32, {0, 1, 1, 1});
  run(cpu::max_pool2d, {none}, {none_out}, &attrs);
  run(cpu::max_pool2d_grad, {none, none_out}, {none}, &attrs);
}

}  // namespace
}  // namespace tapedeck::testing
