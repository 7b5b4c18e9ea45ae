// Tests convolutions as authors call them: values by hand, identities between convolutions, and the message of each mistake.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/conv.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/mistakes.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::expect_mistakes;
using testing::f32;
using testing::f32_of;
using testing::message_of;
using testing::Mistake;
using Floats = std::vector<float>;

void expect_near_tensor(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.type(), b.type());
  const Floats x = a.to_vector<float>(), y = b.to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-4 * std::max(1.0f, std::fabs(y[i]))) << i;
}

// ---- one dimension ----

TEST(Conv1d, SlidesStridesAndDilates) {
  const Tensor x = f32_of({1, 2, 3, 4, 5}, {1, 1, 5}), w = f32_of({1, 10}, {1, 1, 2});
  EXPECT_EQ(conv1d(x, w).to_vector<float>(), (Floats{21, 32, 43, 54}));
  EXPECT_EQ(conv1d(x, w, {.stride = {2}}).to_vector<float>(), (Floats{21, 43}));
  EXPECT_EQ(conv1d(x, w, {.dilation = {3}}).to_vector<float>(), (Floats{41, 52}));
  EXPECT_EQ(conv1d(x, w, {.padding = {1}}).to_vector<float>(), (Floats{10, 21, 32, 43, 54, 5}));
  EXPECT_EQ(conv1d(x, w, {.padding = {1, 0}}).to_vector<float>(),
            (Floats{10, 21, 32, 43, 54}));  // causal: padding in front only
  EXPECT_EQ(conv1d(x, w, tensor({100})).to_vector<float>(), (Floats{121, 132, 143, 154}));
}

TEST(Conv1d, KeepsGroupsApart) {
  const Tensor x = f32_of({1, 2, 3, 4, 5, 6}, {1, 2, 3}), w = f32_of({1, 1, 10, 10}, {2, 1, 2});
  EXPECT_EQ(conv1d(x, w, {.groups = 2}).to_vector<float>(), (Floats{3, 5, 90, 110}));
}

// ---- two dimensions ----

TEST(Conv2d, PadsEverySideAsTold) {
  const Tensor x = f32_of({1, 2, 3, 4}, {1, 1, 2, 2}), w = f32_of({1, 10, 100, 1000}, {1, 1, 2, 2});
  EXPECT_EQ(conv2d(x, w).to_vector<float>(), (Floats{4321}));
  EXPECT_EQ(conv2d(x, w, {.padding = {1, 0, 0, 0}}).to_vector<float>(), (Floats{2100, 4321}));  // one row above
  EXPECT_EQ(conv2d(x, w, {.padding = {0, 0, 0, 1}}).to_vector<float>(), (Floats{4321, 402}));   // one column to the right
  EXPECT_EQ(conv2d(x, w, {.padding = {1}, .dilation = {2}}).to_vector<float>(), (Floats{4000, 300, 20, 1}));
}

TEST(Conv2d, AddsABiasPerChannel) {
  const Tensor x = f32_of({1, 2}, {1, 1, 1, 2}), w = f32_of({1, 10}, {2, 1, 1, 1});
  EXPECT_EQ(conv2d(x, w, tensor({100, 200})).to_vector<float>(), (Floats{101, 102, 210, 220}));
}

TEST(Conv2d, GroupsAreConvolutionsSideBySide) {
  const Tensor x = normal({2, 6, 7, 5}), w = normal({9, 2, 3, 3});
  std::vector<Tensor> parts;
  for (int g = 0; g < 3; ++g)
    parts.push_back(conv2d(slice(x, 1, 2 * g, 2 * g + 2), slice(w, 0, 3 * g, 3 * g + 3), {.stride = {2}, .padding = {1}}));
  expect_near_tensor(conv2d(x, w, {.stride = {2}, .padding = {1}, .groups = 3}), concat(parts, 1));
}

TEST(Conv2d, DilationIsAKernelWithHoles) {
  const Tensor x = normal({2, 3, 9, 8}), w = normal({4, 3, 2, 2});
  Tensor holes = zeros({4, 3, 3, 4});
  const Floats from = w.to_vector<float>();
  for (std::int64_t i = 0; i < 12; ++i)
    for (std::int64_t k = 0; k < 4; ++k)
      static_cast<float*>(holes.mutable_data())[i * 12 + k / 2 * 8 + k % 2 * 3] = from[i * 4 + k];
  expect_near_tensor(conv2d(x, w, {.dilation = {2, 3}}), conv2d(x, holes));
}

TEST(Conv3d, OfOneSliceIsConv2d) {
  const Tensor x = normal({2, 4, 1, 6, 5}), w = normal({6, 2, 1, 3, 3});
  const Tensor y = conv3d(x, w, {.stride = {1, 2, 1}, .padding = {0, 1, 1}, .groups = 2});
  const Tensor flat =
      conv2d(reshape(x, {2, 4, 6, 5}), reshape(w, {6, 2, 3, 3}), {.stride = {2, 1}, .padding = {1}, .groups = 2});
  EXPECT_EQ(y.shape(), (Shape{2, 6, 1, 3, 5}));
  expect_near_tensor(reshape(y, {2, 6, 3, 5}), flat);
}

TEST(Conv3d, SumsACube) {
  EXPECT_EQ(conv3d(ones({1, 1, 2, 2, 2}), ones({1, 1, 2, 2, 2}), tensor({1})).to_vector<float>(), (Floats{9}));
}

// ---- transposed convolutions ----

TEST(ConvTranspose, SpreadsTheKernel) {
  const Tensor x = f32_of({1, 2, 3}, {1, 1, 3}), w = f32_of({1, 10, 100}, {1, 1, 3});
  EXPECT_EQ(conv_transpose1d(x, w).to_vector<float>(), (Floats{1, 12, 123, 230, 300}));
  EXPECT_EQ(conv_transpose1d(x, w, {.stride = {2}}).to_vector<float>(), (Floats{1, 10, 102, 20, 203, 30, 300}));
  EXPECT_EQ(conv_transpose1d(x, w, {.stride = {2}, .padding = {1}}).to_vector<float>(), (Floats{10, 102, 20, 203, 30}));
  EXPECT_EQ(conv_transpose1d(x, w, {.stride = {2}, .padding = {1}, .output_padding = {1}}).to_vector<float>(),
            (Floats{10, 102, 20, 203, 30, 300}));
  EXPECT_EQ(conv_transpose1d(x, w, tensor({1000}), {.dilation = {2}}).to_vector<float>(),
            (Floats{1001, 1002, 1013, 1020, 1130, 1200, 1300}));
}

TEST(ConvTranspose, SizesAreThoseOfTheFormula) {
  const Tensor x = zeros({2, 4, 5, 6}), w = zeros({4, 3, 4, 3});
  // The formula gives (5 - 1) 2 - 2 + 3 + 1 + 1 and (6 - 1) 3 - 0 + 2 * 2 + 1 + 0.
  EXPECT_EQ(conv_transpose2d(x, w, {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 0}, .dilation = {1, 2}}).shape(),
            (Shape{2, 3, 11, 20}));
  EXPECT_EQ(conv_transpose2d(x, w, {.groups = 2}).shape(), (Shape{2, 6, 8, 8}));
  EXPECT_EQ(conv_transpose3d(zeros({1, 2, 3, 3, 3}), zeros({2, 5, 2, 2, 2}), {.stride = {2}}).shape(), (Shape{1, 5, 6, 6, 6}));
}

// The test checks <conv(a), b> = <a, conv_transpose(b)>.
TEST(ConvTranspose, IsTheTransposeOfItsConvolution) {
  const ConvAttrs down{.stride = {2, 1}, .padding = {1, 0, 2, 1}, .dilation = {1, 2}, .groups = 2};
  const Tensor a = normal({3, 4, 9, 8}), w = normal({6, 2, 3, 3}), y = conv2d(a, w, down), b = normal(y.shape());
  const Tensor up = conv_transpose2d(
      b, w, {.stride = down.stride, .padding = down.padding, .output_padding = {1, 0}, .dilation = down.dilation, .groups = 2});
  ASSERT_EQ(up.shape(), a.shape());
  EXPECT_NEAR(sum(y * b).item(), sum(a * up).item(), 1e-3);
}

TEST(ConvTranspose, GradientsAreThoseOfTheConvolutionReversed) {
  Tensor x = normal({2, 4, 3, 3}), w = normal({4, 3, 2, 2});
  x.requires_grad(true);
  w.requires_grad(true);
  const Tensor y = conv_transpose2d(x, w, {.stride = {2}}), head = normal(y.shape());
  backward(sum(y * head));
  expect_near_tensor(x.grad(), conv2d(head, w, {.stride = {2}}));
  expect_near_tensor(w.grad(), conv2d_weight_grad(x.detach(), head, {.stride = {2}, .size = {2, 2}}));
}

// ---- attributes as graphs store them ----

TEST(ConvAttributes, AreStoredForEveryDimension) {
  const Tensor x = normal({1, 2, 6, 6}), w = normal({2, 2, 3, 3});
  EXPECT_TRUE(
      bit_equal(conv2d(x, w, {.stride = {2}, .padding = {1}}), conv2d(x, w, {.stride = {2, 2}, .padding = {1, 1, 1, 1}})));
}

TEST(ConvCost, CountsGroups) {
  const Type x{DType::f32, {1, 8, 10, 10}}, whole{DType::f32, {8, 8, 3, 3}}, depthwise{DType::f32, {8, 1, 3, 3}},
      y{DType::f32, {1, 8, 8, 8}};
  const std::vector<Type> with_whole = {x, whole}, with_depthwise = {x, depthwise}, result = {y};
  const ConvAttrs one, eight{.groups = 8};
  EXPECT_EQ(ops::conv2d.cost(with_whole, result, &one).flops, 2.0 * 8 * 64 * 8 * 9);
  EXPECT_EQ(ops::conv2d.cost(with_depthwise, result, &eight).flops, 2.0 * 8 * 64 * 9);
}

// ---- mistakes and their messages ----

const Mistake kConvMistakes[] = {
    MISTAKE("[conv1d] operands need three dimensions: f32[1,5] and f32[1,1,2]", conv1d(f32({1, 5}), f32({1, 1, 2}))),
    MISTAKE("[conv1d] channels differ: x f32[1,4,5] has 4, weights f32[2,3,2] take 3", conv1d(f32({1, 4, 5}), f32({2, 3, 2}))),
    MISTAKE("[conv1d] the window of f32[1,1,4] does not fit into f32[1,1,3]", conv1d(f32({1, 1, 3}), f32({1, 1, 4}))),
    MISTAKE("[conv1d] stride takes one number, got 2", conv1d(f32({1, 1, 3}), f32({1, 1, 2}), {.stride = {1, 1}})),
    MISTAKE("[conv1d] padding takes 1 or 2 numbers, got 3", conv1d(f32({1, 1, 3}), f32({1, 1, 2}), {.padding = {1, 1, 1}})),
    MISTAKE("[conv1d] an operand is undefined", conv1d(f32({1, 1, 3}), Tensor())),
    MISTAKE("[conv1d] bias needs 2 numbers, got f32[3]", conv1d(f32({1, 1, 3}), f32({2, 1, 2}), f32({3}))),
    MISTAKE("[conv2d] operands need four dimensions: f32[1,5,5] and f32[1,1,2,2]", conv2d(f32({1, 5, 5}), f32({1, 1, 2, 2}))),
    MISTAKE("[conv2d] needs a floating type, got i32[1,1,5,5]",
            conv2d(zeros({1, 1, 5, 5}, DType::i32), zeros({1, 1, 2, 2}, DType::i32))),
    MISTAKE("[conv2d] channels differ: x f32[1,4,5,5] has 4, weights f32[6,3,3,3] take 3 in each of 2 groups",
            conv2d(f32({1, 4, 5, 5}), f32({6, 3, 3, 3}), {.groups = 2})),
    MISTAKE("[conv2d] weights f32[5,2,3,3] do not divide into 2 groups",
            conv2d(f32({1, 4, 5, 5}), f32({5, 2, 3, 3}), {.groups = 2})),
    MISTAKE("[conv2d] groups must be at least 1", conv2d(f32({1, 4, 5, 5}), f32({5, 2, 3, 3}), {.groups = 0})),
    MISTAKE("[conv2d] dilation must be at least 1", conv2d(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.dilation = {0}})),
    MISTAKE("[conv2d] padding must not be negative", conv2d(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.padding = {-1}})),
    MISTAKE("[conv2d] padding takes 1, 2 or 4 numbers, got 3",
            conv2d(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.padding = {1, 1, 1}})),
    MISTAKE("[conv2d] stride takes 1 or 2 numbers, got 3", conv2d(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.stride = {1, 1, 1}})),
    MISTAKE("[conv2d] stride 2000000 is too large", conv2d(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.stride = {2000000}})),
    MISTAKE("[conv2d] the window of f32[1,1,3,3] does not fit into f32[1,1,5,5]",
            conv2d(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.dilation = {3}})),
    MISTAKE("[conv2d] bias needs 4 numbers, got an undefined tensor", conv2d(f32({1, 1, 5, 5}), f32({4, 1, 3, 3}), Tensor())),
    MISTAKE("[conv2d_input_grad] size takes 2 numbers, those of the input",
            conv2d_input_grad(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.size = {5}})),
    MISTAKE("[conv2d_input_grad] the gradient f32[1,1,5,5] does not fit weights f32[1,1,3,3] and input f32[1,1,5,5], which "
            "give f32[1,1,3,3]",
            conv2d_input_grad(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}), {.size = {5, 5}})),
    MISTAKE("[conv2d_weight_grad] size does not fit a type: f32[1,1,-1,3]",
            conv2d_weight_grad(f32({1, 1, 5, 5}), f32({1, 1, 7, 7}), {.size = {-1, 3}})),
    MISTAKE("[conv3d] operands need five dimensions: f32[1,1,5,5] and f32[1,1,3,3]",
            conv3d(f32({1, 1, 5, 5}), f32({1, 1, 3, 3}))),
    MISTAKE("[conv_transpose2d] channels differ: x f32[1,3,5,5] has 3, weights f32[4,2,3,3] take 4",
            conv_transpose2d(f32({1, 3, 5, 5}), f32({4, 2, 3, 3}))),
    MISTAKE("[conv_transpose2d] output_padding 2 must be less than the stride 2",
            conv_transpose2d(f32({1, 4, 5, 5}), f32({4, 2, 3, 3}), {.stride = {2}, .output_padding = {2}})),
    MISTAKE("[conv_transpose2d] padding leaves nothing of the result of f32[1,4,1,1] and f32[4,2,3,3]",
            conv_transpose2d(f32({1, 4, 1, 1}), f32({4, 2, 3, 3}), {.padding = {2}})),
    MISTAKE("[conv_transpose1d] no elements to convolve in f32[1,4,0] and f32[4,2,3]",
            conv_transpose1d(f32({1, 4, 0}), f32({4, 2, 3}))),
};

TEST(ConvErrors, NameTheFunctionTheTypesAndTheLine) { expect_mistakes(kConvMistakes, "conv_test.cpp"); }

// ---- convolution layers ----

struct Net : Module {
  Conv1d line{*this, "line", 4, 6, {.kernel = {3}, .padding = {1}, .groups = 2}};
  Conv2d plane{*this, "plane", 4, 8, {.kernel = {3, 1}, .stride = {2}, .dilation = {1, 2}, .bias = false}};
  Conv3d space{*this, "space", 2, 3};
  ConvTranspose1d up1{*this, "up1", 3, 2};
  ConvTranspose2d up2{*this, "up2", 4, 6, {.kernel = {4}, .padding = {1}, .groups = 2}};
  ConvTranspose3d up3{*this, "up3", 1, 1};
};

TEST(ConvLayers, AreTheirFunctions) {
  Net net;
  const Tensor x = normal({2, 4, 5}), planes = normal({2, 4, 5, 5});
  EXPECT_EQ(net.line.weight.shape(), (Shape{6, 2, 3}));
  expect_near_tensor(net.line(x), add(conv1d(x, net.line.weight, {.padding = {1}, .groups = 2}), net.line.bias));
  EXPECT_EQ(net.plane.weight.shape(), (Shape{8, 4, 3, 1}));
  EXPECT_FALSE(net.plane.bias.defined());
  EXPECT_EQ(net.plane(planes).shape(), (Shape{2, 8, 2, 3}));
  EXPECT_EQ(net.space(zeros({1, 2, 4, 4, 4})).shape(), (Shape{1, 3, 2, 2, 2}));
  EXPECT_EQ(net.up1(zeros({1, 3, 7})).shape(), (Shape{1, 2, 14}));
  EXPECT_EQ(net.up2.weight.shape(), (Shape{4, 3, 4, 4}));
  EXPECT_EQ(net.up2(planes).shape(), (Shape{2, 6, 10, 10}));
  EXPECT_EQ(net.up3(zeros({1, 1, 2, 2, 2})).shape(), (Shape{1, 1, 4, 4, 4}));
  EXPECT_EQ(net.parameters().size(), 11u);
}

TEST(ConvLayers, BoundsFollowTheInputsOfAnOutput) {
  Net net;
  // 2 channels of width 3
  for (const float v : net.line.weight.to_vector<float>()) EXPECT_LE(std::fabs(v), std::sqrt(6 / 6.0f));
  for (const float v : net.up2.weight.to_vector<float>())
    EXPECT_LE(std::fabs(v), std::sqrt(6 / 8.0f));  // 2 channels of 16 / 4 each
}

TEST(ConvLayers, RefuseChannelsThatDoNotDivide) {
  struct Bad : Module {};
  Bad bad;
  EXPECT_EQ(message_of<UsageError>([&] { Conv2d(bad, "c", 3, 4, {.groups = 2}); }),
            "[Conv2d] 3 channels in and 4 out do not divide into 2 groups");
  EXPECT_EQ(message_of<UsageError>([&] {
              Conv1d(bad, "c", 2, 4, {.kernel = {1, 2}});
            }),
            "[Conv1d] kernel takes one number, got 2");
  EXPECT_EQ(message_of<UsageError>([&] { Conv3d(bad, "c", 2, 4, {.kernel = {0}}); }), "[Conv3d] kernel must be at least 1");
}

}  // namespace
}  // namespace tapedeck
