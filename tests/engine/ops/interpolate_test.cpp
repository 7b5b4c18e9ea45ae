// Tests resampling of images, and windows as columns (unfold and fold), against small examples worked out by hand.
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/create.h>
#include <tapedeck/engine/ops/interpolate.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/unfold.h>

namespace tapedeck {
namespace {

using testing::counting;
using testing::floats_of;
using testing::here;
using testing::refusal;

using Floats = std::vector<float>;

TEST(Interpolate, NearestRepeatsAndSkips) {
  EXPECT_EQ(floats_of(interpolate(counting({1, 1, 3}), {6})), (Floats{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(floats_of(interpolate(counting({1, 1, 3}), {5})), (Floats{0, 0, 1, 1, 2}));
  EXPECT_EQ(floats_of(interpolate(counting({1, 1, 6}), {3})), (Floats{0, 2, 4}));
  EXPECT_EQ(floats_of(interpolate(counting({1, 1, 2, 2}), {2, 4})), (Floats{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(floats_of(interpolate(counting({1, 1, 2, 1, 2}), {2, 2, 2})), (Floats{0, 1, 0, 1, 2, 3, 2, 3}));
}

TEST(Interpolate, BilinearBetweenCentresOrCorners) {
  const Tensor x = reshape(tensor({0, 4}), {1, 1, 1, 2});
  EXPECT_EQ(floats_of(interpolate(x, {1, 4}, "bilinear")), (Floats{0, 1, 3, 4}));
  EXPECT_EQ(floats_of(interpolate(x, {1, 5}, "bilinear", true)), (Floats{0, 1, 2, 3, 4}));
  const Tensor square = reshape(tensor({0, 2, 4, 6}), {1, 1, 2, 2});
  EXPECT_EQ(floats_of(interpolate(square, {3, 3}, "bilinear", true)), (Floats{0, 1, 2, 2, 3, 4, 4, 5, 6}));
  EXPECT_EQ(floats_of(interpolate(square, {1, 1}, "bilinear")), (Floats{3}));
  EXPECT_EQ(floats_of(interpolate(square, {1, 1}, "bilinear", true)), (Floats{0}));
}

TEST(Interpolate, GradientsGiveBackEveryWeight) {
  Tensor x = counting({1, 1, 3});
  x.requires_grad(true);
  backward(sum(interpolate(x, {5})));
  EXPECT_EQ(floats_of(x.grad()), (Floats{2, 2, 1}));
  Tensor y = reshape(tensor({0, 4}), {1, 1, 1, 2}).detach();
  y.requires_grad(true);
  backward(sum(mul(interpolate(y, {1, 4}, "bilinear"), tensor({1, 2, 3, 4}))));
  EXPECT_EQ(floats_of(y.grad()), (Floats{3.25f, 6.75f}));
}

TEST(Interpolate, RefusesSizesAndModes) {
  const Tensor x = counting({1, 1, 2, 2});
  EXPECT_EQ(refusal([&] { interpolate(here(x), {3}); }),
            "[interpolate_nearest] size lists 1 numbers for f32[1,1,2,2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              interpolate(here(x), {3, 0});
            }),
            "[interpolate_nearest] cannot resample f32[1,1,2,2] to 0 in dimension 3 (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              interpolate(here(x), {3, 3}, "cubic");
            }),
            "[interpolate] mode must be nearest or bilinear, not 'cubic' (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              interpolate(here(x), {3, 3}, "nearest", true);
            }),
            "[interpolate] align_corners is for bilinear only (a.cpp:1)");
  const Tensor row = counting({2, 2});
  EXPECT_EQ(refusal([&] { interpolate(here(row), {3}); }),
            "[interpolate_nearest] needs [n,c] and one to three dimensions, got f32[2,2] (a.cpp:1)");
}

TEST(Unfold, WindowsAreColumns) {
  const Tensor x = counting({1, 1, 2, 3});
  EXPECT_EQ(floats_of(unfold(x, {.window = {2, 2}})), (Floats{0, 1, 1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(floats_of(unfold(x, {.window = {1, 1}, .stride = {2, 2}, .padding = {1, 1}})), (Floats{0, 0, 0, 0, 4, 0}));
  EXPECT_EQ(floats_of(unfold(x, {.window = {1, 2}, .dilation = {1, 2}})), (Floats{0, 3, 2, 5}));
}

TEST(Fold, AddsWindowsUp) {
  const Tensor columns = ones({1, 4, 2});
  EXPECT_EQ(floats_of(fold(columns, {.size = {2, 3}, .window = {2, 2}})), (Floats{1, 2, 1, 1, 2, 1}));
}

TEST(Unfold, RefusesWindowsThatDoNotFit) {
  const Tensor x = counting({1, 1, 2, 3});
  EXPECT_EQ(refusal([&] {
              unfold(here(x), {.window = {3, 1}});
            }),
            "[unfold] the window does not fit an image of [2,3] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { unfold(here(x), {.window = {1}}); }),
            "[unfold] window lists 1 numbers, not height and width (a.cpp:1)");
  EXPECT_EQ(refusal([&] { unfold(here(x), {.window = {1, 1}, .stride = {0, 1}}); }), "[unfold] stride cannot be 0 (a.cpp:1)");
  const Tensor columns = ones({1, 4, 2});
  EXPECT_EQ(refusal([&] {
              fold(here(columns), {.size = {3, 3}, .window = {2, 2}});
            }),
            "[fold] f32[1,4,2] has 2 columns, the image 4 windows (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              fold(here(columns), {.size = {2, 2}, .window = {1, 3}, .padding = {0, 1}});
            }),
            "[fold] rows of f32[1,4,2] do not come in windows of 3 (a.cpp:1)");
}

}  // namespace
}  // namespace tapedeck
