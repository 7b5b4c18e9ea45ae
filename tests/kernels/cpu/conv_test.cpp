// Tests convolution, its gradients and pooling. The oracle is the definition: nested loops in double precision.
#include <tapedeck/tests/kernels/conv3d.h>
#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cpu/convolution/conv_plan.h>
#include <tapedeck/kernels/cpu/images.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/half.h>

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

namespace tapedeck::kernels::cpu {
void PrintTo(const ConvShape& s, std::ostream* out) {
  const auto list = [&](const char* name, const Spatial& v) { *out << name << v[0] << "," << v[1] << "," << v[2]; };
  *out << s.batch << " images, " << s.in_channels << " to " << s.out_channels << " channels in " << s.groups << " groups";
  list(" in ", s.in), list(" kernel ", s.kernel), list(" stride ", s.stride), list(" dilation ", s.dilation);
  list(" before ", s.before), list(" after ", s.after);
}
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
using cpu::ConvPass;
using cpu::ConvShape;
using cpu::Spatial;

constexpr unsigned kConvSeed = 4711;

// A shape with two dimensions, one group, and equal padding on both sides.
ConvShape flat(std::int64_t batch, std::int64_t in, std::int64_t height, std::int64_t width, std::int64_t out,
               std::int64_t kernel_height, std::int64_t kernel_width, Spatial stride, Spatial pad) {
  ConvShape s;
  s.batch = batch, s.in_channels = in, s.out_channels = out;
  s.in = {1, height, width}, s.kernel = {1, kernel_height, kernel_width};
  s.stride = stride, s.before = s.after = pad;
  return s;
}

// A shape with any number of dimensions. `n` is {batch, in, out, groups}.
ConvShape general(const std::int64_t (&n)[4], Spatial in, Spatial kernel, Spatial stride, Spatial dilation, Spatial before,
                  Spatial after) {
  return {n[0], n[1], n[2], n[3], in, kernel, stride, dilation, before, after};
}

// place() turns coordinates into a flat row-major index; spread() does the inverse.
std::int64_t place(const Spatial& at, const Spatial& size) { return (at[0] * size[1] + at[1]) * size[2] + at[2]; }
Spatial spread(std::int64_t at, const Spatial& size) {
  return {at / (size[1] * size[2]), at / size[2] % size[1], at % size[2]};
}

// Calls f(x, w, y) with the flat indices of every product of the convolution.
template <class F>
void for_terms(const ConvShape& s, F&& f) {
  const Spatial out = {s.out(0), s.out(1), s.out(2)};
  for (std::int64_t plane = 0; plane < s.batch * s.out_channels; ++plane)
    for (std::int64_t i = 0; i < s.in_per_group(); ++i)
      for (std::int64_t y = 0; y < s.out_plane(); ++y)
        for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
          const Spatial to = spread(y, out), k = spread(tap, s.kernel);
          Spatial from;
          bool inside = true;
          for (std::size_t d = 0; d < 3; ++d) {
            from[d] = to[d] * s.stride[d] + k[d] * s.dilation[d] - s.before[d];
            inside = inside && from[d] >= 0 && from[d] < s.in[d];
          }
          if (!inside) continue;
          const std::int64_t image = plane / s.out_channels, o = plane % s.out_channels;
          const std::int64_t channel = o / s.out_per_group() * s.in_per_group() + i;
          f((image * s.in_channels + channel) * s.in_plane() + place(from, s.in), (o * s.in_per_group() + i) * s.taps() + tap,
            plane * s.out_plane() + y);
        }
}

// Sizes [first, second, spatial]; only two spatial dimensions if `s` has no more.
Sizes sizes(const ConvShape& s, std::int64_t first, std::int64_t second, const Spatial& spatial) {
  return s.flat() ? Sizes{first, second, spatial[1], spatial[2]} : Sizes{first, second, spatial[0], spatial[1], spatial[2]};
}
Ints list(const ConvShape& s, const Spatial& v) { return s.flat() ? Ints{v[1], v[2]} : Ints{v[0], v[1], v[2]}; }

struct Operands {
  Array x, w, y;
  Operands(Random& random, DType dtype, const ConvShape& s)
      : x(random_array(random, dtype, sizes(s, s.batch, s.in_channels, s.in))),
        w(random_array(random, dtype, sizes(s, s.out_channels, s.in_per_group(), s.kernel))),
        y(random_array(random, dtype, sizes(s, s.batch, s.out_channels, {s.out(0), s.out(1), s.out(2)}))) {}
};

Array like(const Array& a) {
  const Array b = make_array(a.view.dtype, Sizes(a.view.sizes, a.view.sizes + a.view.rank));
  for (std::int64_t i = 0; i < b.numel(); ++i) b.set(i, 99);  // old content must not change the result
  return b;
}

struct Results {
  Array y, dx, dw;
};

Results convolve(const Operands& in, const ConvShape& s, bool with_workspace = true) {
  const bool flat = s.flat();
  Ints padding = list(s, s.before);
  for (const std::int64_t v : list(s, s.after)) padding.push_back(v);
  const ConvAttrs forward{list(s, s.stride), padding, list(s, s.dilation), s.groups};
  const ConvInputGradAttrs input{forward.stride, padding, forward.dilation, s.groups, list(s, s.in)};
  const ConvWeightGradAttrs weight{forward.stride, padding, forward.dilation, s.groups, list(s, s.kernel)};
  const Results out{like(in.y), like(in.x), like(in.w)};
  const auto bytes = [&](ConvPass pass) { return with_workspace ? cpu::convolution_workspace(pass, s, in.x.view.dtype) : 0; };
  EXPECT_EQ(run(flat ? cpu::conv2d : cpu::conv3d, {in.x, in.w}, {out.y}, &forward, bytes(ConvPass::forward)).fault, nullptr);
  EXPECT_EQ(
      run(flat ? cpu::conv2d_input_grad : cpu::conv3d_input_grad, {in.y, in.w}, {out.dx}, &input, bytes(ConvPass::input_grad))
          .fault,
      nullptr);
  EXPECT_EQ(run(flat ? cpu::conv2d_weight_grad : cpu::conv3d_weight_grad, {in.y, in.x}, {out.dw}, &weight,
                bytes(ConvPass::weight_grad))
                .fault,
            nullptr);
  return out;
}

// `size` is the sum of the magnitudes that an element adds, and `rounding` the error of storing it.
void expect_near(const Array& got, const std::vector<double>& expected, const std::vector<double>& size, double tolerance,
                 double rounding, const char* what) {
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const auto u = static_cast<std::size_t>(i);
    ASSERT_NEAR(got.get(i), expected[u], size[u] * tolerance + std::fabs(expected[u]) * rounding) << what << " element " << i;
  }
}

void expect_convolution(const Operands& in, const Results& out, const ConvShape& s, double rounding = 0) {
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
  expect_near(out.y, y, y_size, tolerance, rounding, "y");
  expect_near(out.dx, dx, dx_size, tolerance, rounding, "dx");
  expect_near(out.dw, dw, dw_size, tolerance, rounding, "dw");
}

const ConvShape kShapes[] = {
    flat(2, 3, 8, 8, 5, 3, 3, {1, 1, 1}, {0, 1, 1}),
    flat(64, 1, 8, 8, 16, 3, 3, {1, 1, 1}, {0, 1, 1}),
    flat(13, 16, 8, 8, 16, 3, 3, {1, 1, 1}, {0, 1, 1}),
    flat(37, 10, 9, 7, 13, 3, 3, {1, 1, 1}, {0, 1, 1}),
    flat(3, 4, 11, 9, 6, 5, 3, {1, 2, 1}, {0, 2, 0}),
    flat(1, 16, 12, 12, 32, 1, 1, {1, 1, 1}, {0, 0, 0}),
    flat(9, 32, 6, 6, 16, 3, 3, {1, 2, 2}, {0, 1, 1}),
    flat(2, 2, 5, 5, 3, 5, 5, {1, 1, 1}, {0, 4, 4}),
    flat(2, 3, 4, 4, 2, 4, 4, {1, 1, 1}, {0, 0, 0}),
    flat(9, 17, 8, 8, 33, 3, 3, {1, 1, 1}, {0, 0, 0}),
    flat(1, 3, 30, 30, 8, 7, 7, {1, 2, 2}, {0, 3, 3}),
    flat(4, 8, 7, 7, 8, 2, 2, {1, 3, 3}, {0, 0, 0}),
    flat(2, 1, 1, 40, 4, 1, 5, {1, 1, 2}, {0, 0, 2}),
    flat(9, 64, 4, 4, 48, 3, 3, {1, 1, 1}, {0, 1, 1}),
    // depthwise; depthwise with two outputs for each input; groups of few and of many channels
    general({3, 32, 32, 32}, {1, 9, 8}, {1, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}),
    general({2, 24, 24, 24}, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}),
    general({2, 6, 12, 6}, {1, 7, 6}, {1, 3, 2}, {1, 1, 1}, {1, 1, 1}, {0, 1, 0}, {0, 1, 1}),
    general({3, 16, 32, 4}, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}),
    general({2, 64, 32, 2}, {1, 6, 6}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}),
    // dilated, strided, and padded on one side only
    general({2, 16, 16, 1}, {1, 12, 11}, {1, 3, 3}, {1, 2, 2}, {1, 2, 3}, {0, 2, 3}, {0, 1, 3}),
    general({2, 9, 16, 1}, {1, 1, 50}, {1, 1, 3}, {1, 1, 1}, {1, 1, 8}, {0, 0, 16}, {0, 0, 0}),
    general({3, 8, 16, 1}, {1, 1, 30}, {1, 1, 4}, {1, 1, 3}, {1, 1, 1}, {0, 0, 0}, {0, 0, 2}),
    general({2, 3, 24, 1}, {1, 16, 16}, {1, 4, 4}, {1, 4, 4}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}),
    // three dimensions
    general({2, 3, 16, 1}, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
    general({1, 16, 16, 1}, {4, 6, 6}, {2, 3, 3}, {2, 1, 2}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}),
    general({2, 8, 8, 2}, {6, 5, 5}, {3, 2, 3}, {1, 2, 1}, {2, 1, 2}, {2, 0, 1}, {0, 1, 2}),
    general({2, 4, 4, 4}, {3, 4, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
};

class Conv : public ::testing::TestWithParam<ConvShape> {};

TEST_P(Conv, MatchesTheDefinition) {
  SCOPED_TRACE(::testing::Message() << "seed " << kConvSeed);
  Random random(kConvSeed);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Operands in(random, dtype, GetParam());
    expect_convolution(in, convolve(in, GetParam()), GetParam());
  }
}

// The number that a half holds, as f32.
Array widened(const Array& half) {
  const Array wide = make_array(DType::f32, Sizes(half.view.sizes, half.view.sizes + half.view.rank));
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    const std::uint16_t bits = half.at<std::uint16_t>(i);
    wide.at<float>(i) =
        half.view.dtype == DType::bf16 ? kernels::to_f32(kernels::Bf16{bits}) : kernels::to_f32(kernels::F16{bits});
  }
  return wide;
}

Array rounded_to(DType dtype, const Array& wide) {
  const Array half = make_array(dtype, Sizes(wide.view.sizes, wide.view.sizes + wide.view.rank));
  for (std::int64_t i = 0; i < wide.numel(); ++i)
    half.at<std::uint16_t>(i) =
        dtype == DType::bf16 ? kernels::to_bf16(wide.at<float>(i)).bits : kernels::to_f16(wide.at<float>(i)).bits;
  return half;
}

Operands in_halves(DType dtype, Operands in) {
  for (Array* a : {&in.x, &in.w, &in.y}) *a = rounded_to(dtype, *a);
  return in;
}

TEST_P(Conv, MatchesTheDefinitionInHalves) {
  Random random(kConvSeed);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Operands halves = in_halves(dtype, Operands(random, DType::f32, GetParam()));
    Operands in = halves;
    for (Array* a : {&in.x, &in.w, &in.y}) *a = widened(*a);
    Results out, again;
    with_threads(1, [&] { out = convolve(halves, GetParam()); });
    with_threads(2, [&] { again = convolve(halves, GetParam()); });
    EXPECT_TRUE(same_bits(out.y, again.y) && same_bits(out.dx, again.dx) && same_bits(out.dw, again.dw));
    const double half_unit = dtype == DType::bf16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -11);
    expect_convolution(in, {widened(out.y), widened(out.dx), widened(out.dw)}, GetParam(), half_unit);
  }
}

TEST_P(Conv, PlainLoopsMatchToo) {
  Random random(kConvSeed);
  const Operands in(random, DType::f32, GetParam());
  expect_convolution(in, convolve(in, GetParam(), false), GetParam());
}

TEST_P(Conv, ThreadsDoNotChangeTheBits) {
  Random random(kConvSeed);
  const Operands in(random, DType::f32, GetParam());
  Results one, two;
  with_threads(1, [&] { one = convolve(in, GetParam()); });
  with_threads(2, [&] { two = convolve(in, GetParam()); });
  EXPECT_TRUE(same_bits(one.y, two.y));
  EXPECT_TRUE(same_bits(one.dx, two.dx));
  EXPECT_TRUE(same_bits(one.dw, two.dw));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv, ::testing::ValuesIn(kShapes));

// Calls one method of computing with exactly the workspace of the rule, for all three passes. Returns the number of passes
// that the method accepts.
using Way = bool (*)(ConvPass, const ConvShape&, const cpu::ConvStrides&, const float*, const float*, float*, void*,
                     std::size_t);
int passes_taken(Way way, const Operands& in, const ConvShape& s, const Results& out) {
  int taken = 0;
  const cpu::ConvStrides strides{cpu::image_stride(in.x.view), cpu::image_stride(in.y.view)};
  const auto runs = [&](ConvPass pass, const Array& a, const Array& b, const Array& to) {
    const std::int64_t bytes = cpu::conv_workspace(pass, s);
    std::vector<std::uint64_t> scratch(static_cast<std::size_t>(bytes) / 8 + 16);
    void* const workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    taken += way(pass, s, strides, a.view.as<float>(), b.view.as<float>(), to.view.as<float>(), workspace,
                 static_cast<std::size_t>(bytes));
  };
  runs(ConvPass::forward, in.x, in.w, out.y);
  runs(ConvPass::input_grad, in.y, in.w, out.dx);
  runs(ConvPass::weight_grad, in.y, in.x, out.dw);
  return taken;
}

// oneDNN must accept the usual shapes with this workspace; otherwise a slower method would run unnoticed. The processor
// decides which other shapes it accepts.
TEST(ConvWorkspace, IsEnoughForOneDnn) {
  Random random(kConvSeed);
  for (const ConvShape& s : kShapes) {
    if (s.groups != 1 || s.dilation != Spatial{1, 1, 1} || s.kernel != Spatial{1, 3, 3} || s.stride != Spatial{1, 1, 1} ||
        s.before[1] != 1)
      continue;
    const Operands in(random, DType::f32, s);
    EXPECT_EQ(passes_taken(cpu::convolve_onednn, in, s, {like(in.y), like(in.x), like(in.w)}), 3)
        << ::testing::PrintToString(s);
  }
}

// The method by matrix products accepts every shape with enough channels, whether or not oneDNN does.
TEST_P(Conv, ProductsMatchToo) {
  const ConvShape& s = GetParam();
  Random random(kConvSeed);
  const Operands in(random, DType::f32, s);
  const Results out{like(in.y), like(in.x), like(in.w)};
  const bool pays = s.in_per_group() * s.taps() >= 16 && s.out_per_group() >= 4;
  const int taken = passes_taken(cpu::convolve_products, in, s, out);
  EXPECT_EQ(taken, pays ? 3 : 0);
  if (taken == 3) expect_convolution(in, out, s);
}

// The same elements with `gap` other elements between two images.
Array with_gaps(const Array& dense, std::int64_t gap) {
  Array a = dense;
  const std::int64_t images = dense.view.sizes[0], image = images > 0 ? dense.numel() / images : 0;
  a.storage = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>(images * (image + gap) / 2 + 1));
  a.view.data = a.storage->data();
  a.view.strides[0] = image + gap;
  std::fill_n(a.view.as<float>(), images * (image + gap), 99.0f);
  for (std::int64_t i = 0; i < dense.numel(); ++i) a.set(i, dense.get(i));
  return a;
}

bool gaps_untouched(const Array& a) {
  const std::int64_t images = a.view.sizes[0], image = a.numel() / images;
  for (std::int64_t i = 0; i < images; ++i)
    for (std::int64_t k = image; k < a.view.strides[0]; ++k)
      if (a.view.as<float>()[i * a.view.strides[0] + k] != 99.0f) return false;
  return true;
}

// Each method must accept and compute the same, however far apart the images are.
TEST_P(Conv, ImagesMayLieApart) {
  const ConvShape& s = GetParam();
  Random random(kConvSeed);
  const Operands in(random, DType::f32, s);
  Operands apart = in;
  apart.x = with_gaps(in.x, 7), apart.y = with_gaps(in.y, 24);
  const Way directly = [](ConvPass pass, const ConvShape& shape, const cpu::ConvStrides& strides, const float* first,
                          const float* second, float* output, void*, std::size_t) {
    cpu::convolve_directly<float>(pass, shape, strides, first, second, output);
    return true;
  };
  for (const Way way : {Way(cpu::convolve_onednn), Way(cpu::convolve_products), directly}) {
    const Results expected{like(in.y), like(in.x), like(in.w)};
    const Results got{with_gaps(like(in.y), 24), with_gaps(like(in.x), 7), like(in.w)};
    const int taken = passes_taken(way, in, s, expected);
    EXPECT_EQ(passes_taken(way, apart, s, got), taken);
    EXPECT_TRUE(same_bits(got.y, expected.y));
    EXPECT_TRUE(same_bits(got.dx, expected.dx));
    EXPECT_TRUE(same_bits(got.dw, expected.dw));
    EXPECT_TRUE(gaps_untouched(got.y) && gaps_untouched(got.dx));
  }
}

TEST(ConvWorkspace, IsASmallPartOfTheActivations) {
  for (const std::int64_t channels : {16, 32, 64}) {
    const ConvShape s = flat(64, channels, 16, 16, channels, 3, 3, {1, 1, 1}, {0, 1, 1});
    const std::int64_t activation = s.batch * s.out_size() * 4;
    EXPECT_LE(cpu::convolution_workspace(ConvPass::forward, s, DType::f32), activation / 2);
    EXPECT_LE(cpu::convolution_workspace(ConvPass::weight_grad, s, DType::f32), activation);
    EXPECT_EQ(cpu::convolution_workspace(ConvPass::forward, s, DType::f64), 0);
  }
}

TEST(ConvEdge, EmptyBatchAndNoChannels) {
  Random random(kConvSeed);
  const ConvShape no_images = flat(0, 3, 5, 5, 4, 3, 3, {1, 1, 1}, {0, 1, 1}),
                  no_channels = flat(2, 0, 5, 5, 4, 3, 3, {1, 1, 1}, {0, 1, 1});
  for (const ConvShape& s : {no_images, no_channels}) {
    const Operands in(random, DType::f32, s);
    const Results out = convolve(in, s);
    for (const Array& a : {out.y, out.dx, out.dw})
      for (std::int64_t i = 0; i < a.numel(); ++i) EXPECT_EQ(a.get(i), 0);
  }
}

TEST(Pool, MatchesTheDefinition) {
  Random random(kConvSeed);
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
        expected[best] += dy.get(i);
      }
      for (std::int64_t i = 0; i < x.numel(); ++i) ASSERT_NEAR(dx.get(i), expected[i], 1e-5);
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
