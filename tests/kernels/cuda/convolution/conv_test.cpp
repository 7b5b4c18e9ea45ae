// The convolution kernels of the device, in the emulator, compared with the CPU kernels in f64. All elements are small
// integers, so that every sum is exact in every type, and results must be equal.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/tests/kernels/conv3d.h>
#include <tapedeck/tests/kernels/cuda/halves.h>
#include <tapedeck/kernels/cuda/convolution/conv.inl>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tapedeck::testing {
namespace {

namespace cpu = kernels::cpu;
namespace emulated = kernels::emulated;

struct ConvCase {
  const char* name;
  Sizes x, w;
  ConvAttrs attrs;
};

const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      {"plain", {2, 3, 6, 5}, {4, 3, 3, 3}, {{1}, {1}, {1}, 1}},
      {"one by one", {2, 5, 4, 3}, {7, 5, 1, 1}, {{1}, {0}, {1}, 1}},
      {"stride", {1, 2, 7, 9}, {3, 2, 3, 2}, {{2, 3}, {1, 0}, {1}, 1}},
      {"asymmetric padding", {2, 3, 6, 7}, {2, 3, 3, 4}, {{2, 1}, {1, 0, 0, 2}, {1, 2}, 1}},
      {"dilation", {1, 2, 9, 8}, {3, 2, 3, 3}, {{1}, {2}, {2}, 1}},
      {"groups", {2, 4, 6, 7}, {6, 2, 3, 3}, {{2}, {1, 0, 0, 2}, {1, 2}, 2}},
      {"wide groups", {1, 34, 3, 4}, {40, 17, 2, 2}, {{1}, {1, 0}, {1}, 2}},
      {"depthwise", {2, 5, 5, 6}, {5, 1, 3, 3}, {{1}, {2}, {2}, 5}},
      {"depthwise, two for one", {1, 3, 7, 6}, {6, 1, 3, 2}, {{2}, {1}, {1}, 3}},
      {"many tiles", {1, 9, 8, 9}, {70, 9, 3, 3}, {{1}, {1}, {1}, 1}},
      {"many channels", {1, 70, 3, 3}, {65, 70, 2, 1}, {{1}, {0}, {1}, 1}},
      {"long sums", {3, 2, 20, 21}, {3, 2, 3, 3}, {{1}, {1}, {1}, 1}},
      {"window of the image", {2, 3, 4, 5}, {6, 3, 4, 5}, {{1}, {0}, {1}, 1}},
      {"volume", {2, 3, 4, 5, 4}, {4, 3, 3, 3, 2}, {{1}, {1, 1, 0}, {1}, 1}},
      {"volume with groups", {1, 4, 5, 4, 6}, {2, 2, 2, 3, 2}, {{2, 1, 2}, {0, 1, 1, 1, 1, 0}, {2, 1, 1}, 2}},
      {"no images", {0, 3, 4, 4}, {2, 3, 1, 1}, {{1}, {0}, {1}, 1}},
      {"no in channels", {2, 0, 4, 4}, {2, 0, 3, 3}, {{1}, {0}, {1}, 1}},
      {"small map", {16, 3, 2, 2}, {4, 3, 3, 3}, {{1}, {1}, {1}, 1}},
      {"small map with a stride", {16, 3, 1, 2}, {4, 3, 3, 3}, {{2}, {1}, {1}, 1}},
      {"only padding", {2, 2, 0, 3}, {3, 2, 2, 2}, {{1}, {1}, {1}, 1}},
  };
  return all;
}

template <class To>
To sized(const ConvAttrs& a, const Sizes& sizes) {
  To to{a.stride, a.padding, a.dilation, a.groups, {}};
  for (std::size_t i = 2; i < sizes.size(); ++i) to.size.push_back(sizes[i]);
  return to;
}

Sizes result_sizes(const ConvCase& c) {
  const int dims = static_cast<int>(c.x.size()) - 2;
  const cpu::ConvShape s = cpu::conv_shape(dims, c.x.data(), c.w.data(), c.attrs);
  Sizes y = {c.x[0], c.w[0]};
  for (int i = 0; i < dims; ++i) y.push_back(s.out(static_cast<std::size_t>(3 - dims + i)));
  return y;
}

// A pass of a case: its kernels, its operands in f64 and its result.
struct Pass {
  Kernel by_cpu, by_device;
  std::int64_t (*workspace)(const KernelCall&);
  std::vector<Array> inputs;
  Sizes result;
  const void* attrs;
  bool images_in[2], images_out;  // which operands may have gaps between images
};

Array small_integers(Random& random, const Sizes& sizes) {
  Array a = make_array(DType::f64, sizes);
  for (std::int64_t i = 0; i < a.numel(); ++i) a.set(i, static_cast<double>(random() % 3) - 1);
  return a;
}

template <class F>
void for_passes(const ConvCase& c, F&& f) {
  Random random(17);
  const bool flat = c.x.size() == 4;
  const Array x = small_integers(random, c.x), w = small_integers(random, c.w), y = small_integers(random, result_sizes(c));
  const auto input_attrs = sized<ConvInputGradAttrs>(c.attrs, c.x);
  const auto weight_attrs = sized<ConvWeightGradAttrs>(c.attrs, c.w);
  f(Pass{flat ? &cpu::conv2d : &cpu::conv3d,
         flat ? &emulated::conv2d : &emulated::conv3d,
         flat ? &emulated::conv2d_workspace : &emulated::conv3d_workspace,
         {x, w},
         result_sizes(c),
         &c.attrs,
         {true, false},
         true});
  f(Pass{flat ? &cpu::conv2d_input_grad : &cpu::conv3d_input_grad,
         flat ? &emulated::conv2d_input_grad : &emulated::conv3d_input_grad,
         flat ? &emulated::conv2d_input_grad_workspace : &emulated::conv3d_input_grad_workspace,
         {y, w},
         c.x,
         &input_attrs,
         {true, false},
         true});
  f(Pass{flat ? &cpu::conv2d_weight_grad : &cpu::conv3d_weight_grad,
         flat ? &emulated::conv2d_weight_grad : &emulated::conv3d_weight_grad,
         flat ? &emulated::conv2d_weight_grad_workspace : &emulated::conv3d_weight_grad_workspace,
         {y, x},
         c.w,
         &weight_attrs,
         {true, true},
         false});
}

std::int64_t workspace_of(const Pass& pass, const std::vector<Array>& inputs, const Array& output) {
  std::vector<View> in;
  for (const Array& a : inputs) in.push_back(a.view);
  KernelFault fault;
  KernelCall call;
  call.inputs = in.data(), call.outputs = &output.view, call.n_inputs = 2, call.n_outputs = 1;
  call.attrs = pass.attrs, call.fault = &fault;
  return pass.workspace(call);
}

// Runs the pass in a type with the workspace that it asks for. The output starts as poison.
Array by_device(const Pass& pass, DType dtype, bool gaps) {
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < 2; ++i) {
    const Array dense = converted(pass.inputs[i], dtype);
    inputs.push_back(gaps && pass.images_in[i] ? with_gaps(dense, 3) : dense);
  }
  Array output = make_array(dtype, pass.result);
  std::fill(output.storage->begin(), output.storage->end(), ~std::uint64_t{0});
  if (gaps && pass.images_out) output = with_gaps(output, 5);
  const Outcome outcome = run(pass.by_device, inputs, {output}, pass.attrs, workspace_of(pass, inputs, output));
  EXPECT_EQ(outcome.fault, nullptr) << outcome.fault;
  EXPECT_TRUE(!gaps || !pass.images_out || gaps_untouched(output));
  return dense_copy(output);
}

Array by_cpu(const Pass& pass) {
  const Array output = make_array(DType::f64, pass.result);
  EXPECT_EQ(run(pass.by_cpu, pass.inputs, {output}, pass.attrs).fault, nullptr);
  return output;
}

// Halves share the tiles of f32, and differ where elements are read and written: they take the smaller cases only, as the
// emulator is slow.
TEST(CudaConvolution, EqualsTheCpuInEveryType) {
  for (const ConvCase& c : cases())
    for_passes(c, [&](const Pass& pass) {
      const Array expected = by_cpu(pass);
      std::vector<DType> dtypes = {DType::f32, DType::f64};
      if (pass.inputs[0].numel() <= 600 && pass.inputs[1].numel() <= 600)
        dtypes.insert(dtypes.end(), {DType::f16, DType::bf16});
      for (const DType dtype : dtypes)
        EXPECT_TRUE(same_bits(by_device(pass, dtype, false), converted(expected, dtype)))
            << c.name << ", pass to " << ::testing::PrintToString(pass.result) << " in " << dtype_name(dtype);
    });
}

TEST(CudaConvolution, TakesImagesWithGaps) {
  for (const ConvCase& c : cases())
    for_passes(c, [&](const Pass& pass) {
      if (pass.inputs[0].numel() > 2000) return;
      EXPECT_TRUE(same_bits(by_device(pass, DType::f32, true), converted(by_cpu(pass), DType::f32))) << c.name;
    });
}

// Without workspace the gradient of the weights is one long sum. The parts must be used where workspace is given.
TEST(CudaConvolution, SplitsLongSumsOfWeights) {
  const ConvCase& c = cases()[11];
  ASSERT_STREQ(c.name, "long sums");
  for_passes(c, [&](const Pass& pass) {
    const Array output = make_array(DType::f64, pass.result);
    const std::int64_t bytes = workspace_of(pass, pass.inputs, output);
    const bool split = pass.result == c.w;  // 1260 pixels in parts of at least 256
    EXPECT_EQ(bytes, split ? 5 * output.numel() * 8 : 0);
    run(pass.by_device, pass.inputs, {output}, pass.attrs, 0);
    EXPECT_TRUE(same_bits(output, by_cpu(pass)));
  });
}

// Sums of fractions round, and their order must be the same in each run.
TEST(CudaConvolution, GivesTheSameBitsAgain) {
  Random random(5);
  const Array x = random_array(random, DType::f32, {2, 3, 17, 16}), dy = random_array(random, DType::f32, {2, 4, 17, 16});
  ConvWeightGradAttrs attrs;
  attrs.padding = {1}, attrs.size = {3, 3};
  const std::int64_t workspace = 1 << 16;
  const Array first = make_array(DType::f32, {4, 3, 3, 3}), again = make_array(DType::f32, {4, 3, 3, 3});
  run(&emulated::conv2d_weight_grad, {dy, x}, {first}, &attrs, workspace);
  run(&emulated::conv2d_weight_grad, {dy, x}, {again}, &attrs, workspace);
  EXPECT_TRUE(same_bits(first, again));
  const Array expected = make_array(DType::f64, {4, 3, 3, 3});
  run(&cpu::conv2d_weight_grad, {converted(dy, DType::f64), converted(x, DType::f64)}, {expected}, &attrs);
  for (std::int64_t i = 0; i < first.numel(); ++i) EXPECT_NEAR(first.get(i), expected.get(i), 1e-4) << i;
}

// ---- the matrix of a map ----

// The product that cuBLASLt is asked for, f32 and without a batch.
void multiply_plainly(const kernels::Product& p) {
  const auto *a = static_cast<const float*>(p.a.data), *b = static_cast<const float*>(p.b.data);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k)
        sum += a[i * p.a.row_stride + k * p.a.col_stride] * b[k * p.b.row_stride + j * p.b.col_stride];
      static_cast<float*>(p.out)[i * p.n + j] = sum;
    }
}

// Computes a pass as the device does with cuBLASLt. x, w and y are those of the pass, and one of them is its result.
void convolve_with_matrix(const emulated::convolution::MapCall& m) {
  std::vector<float> matrix(static_cast<std::size_t>(m.shape->in_size() * m.shape->out_size()), std::nanf(""));
  KernelFault fault;
  KernelCall call;
  call.fault = &fault;
  const bool sums = m.pass == cpu::ConvPass::weight_grad;
  if (!sums) emulated::convolution::write_map_matrix_of(call, m, matrix.data());
  multiply_plainly(emulated::convolution::map_product(m, matrix.data()));
  if (sums) emulated::convolution::sum_map_matrix_of(call, m, matrix.data());
  EXPECT_EQ(fault.what.load(), nullptr);
}

TEST(CudaConvolution, TheMatrixOfAMapGivesEveryPass) {
  int compared = 0;
  for (const ConvCase& c : cases()) {
    const cpu::ConvShape shape = cpu::conv_shape(static_cast<int>(c.x.size()) - 2, c.x.data(), c.w.data(), c.attrs);
    if (shape.groups != 1 || shape.empty() || shape.in_size() * shape.out_size() > 200000) continue;
    int number = 0;
    for_passes(c, [&](const Pass& pass) {
      const auto kind = static_cast<cpu::ConvPass>(number++);
      const Array first = converted(pass.inputs[0], DType::f32), second = converted(pass.inputs[1], DType::f32);
      const Array result = make_array(DType::f32, pass.result);
      std::fill(result.storage->begin(), result.storage->end(), ~std::uint64_t{0});
      emulated::convolution::MapCall m{
          kind, &shape, cpu::packed_images(shape), DType::f32, first.view.data, second.view.data, result.view.data};
      if (kind == cpu::ConvPass::input_grad) m.x = result.view.data, m.y = first.view.data;
      if (kind == cpu::ConvPass::weight_grad) m.x = second.view.data, m.w = result.view.data, m.y = first.view.data;
      convolve_with_matrix(m);
      EXPECT_TRUE(same_bits(result, converted(by_cpu(pass), DType::f32))) << c.name << ", pass " << number;
      ++compared;
    });
  }
  EXPECT_GE(compared, 27);
}

TEST(CudaConvolution, TheMatrixIsForBatchesOfSmallMaps) {
  const auto suits = [](cpu::ConvPass pass, DType dtype, std::int64_t batch, std::int64_t size, std::int64_t gap,
                        std::int64_t groups = 1) {
    const std::int64_t x[] = {batch, 8, size, size}, w[] = {8, 8 / groups, 3, 3};
    const cpu::ConvShape s = cpu::conv_shape(2, x, w, ConvAttrs{{1}, {1}, {1}, groups});
    const cpu::ConvStrides strides{s.in_size() + gap, s.out_size() + gap};
    return emulated::convolution::suits_map_matrix({pass, &s, strides, dtype, nullptr, nullptr, nullptr});
  };
  using cpu::ConvPass;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::input_grad, ConvPass::weight_grad}) {
    EXPECT_TRUE(suits(pass, DType::f32, 32, 2, 0));
    EXPECT_TRUE(suits(pass, DType::f32, 16, 1, 0));
    EXPECT_FALSE(suits(pass, DType::f32, 15, 1, 0));
    EXPECT_FALSE(suits(pass, DType::f32, 32, 3, 0));
    EXPECT_FALSE(suits(pass, DType::f32, 32, 2, 0, 2));
    EXPECT_FALSE(suits(pass, DType::f64, 32, 2, 0));
    EXPECT_EQ(suits(pass, DType::f32, 32, 2, 4), pass == ConvPass::weight_grad) << "results are dense";
    EXPECT_EQ(suits(pass, DType::bf16, 32, 2, 0), pass != ConvPass::weight_grad) << "halves are rounded once";
  }
}

}  // namespace
}  // namespace tapedeck::testing
