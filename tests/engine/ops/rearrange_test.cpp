// Tests flips, rolls, triangles, pads and ranges, and the functions that cut and join tensors. Expected values are written
// by hand.
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/create.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/rearrange.h>

#include <numeric>

namespace tapedeck {
namespace {

using testing::counting;
using testing::floats_of;
using testing::here;
using testing::refusal;

using Floats = std::vector<float>;
using Longs = std::vector<std::int64_t>;

Longs longs(const Tensor& t) { return t.to_vector<std::int64_t>(); }

TEST(Flip, ReversesAxes) {
  EXPECT_EQ(floats_of(flip(counting({2, 3}), {1})), (Floats{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(floats_of(flip(counting({2, 3}), {-1, 0})), (Floats{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(refusal([] {
              const Tensor x = counting({2});
              flip(here(x), {1});
            }),
            "[flip] axis 1 is outside f32[2] (a.cpp:1)");
  EXPECT_EQ(refusal([] {
              const Tensor x = counting({2});
              flip(here(x), {0, -1});
            }),
            "[flip] axes must ascend and not repeat (a.cpp:1)");
}

TEST(Roll, WrapsAround) {
  EXPECT_EQ(floats_of(roll(counting({5}), {2}, {0})), (Floats{3, 4, 0, 1, 2}));
  EXPECT_EQ(floats_of(roll(counting({5}), {-7}, {0})), (Floats{2, 3, 4, 0, 1}));
  EXPECT_EQ(floats_of(roll(counting({2, 3}), {1, 1}, {0, 1})), (Floats{5, 3, 4, 2, 0, 1}));
  EXPECT_EQ(floats_of(roll(counting({2, 3}), {1})), (Floats{5, 0, 1, 2, 3, 4}));
  EXPECT_EQ(floats_of(roll(counting({3}), {1, 1}, {0, 0})), (Floats{1, 2, 0}));
  EXPECT_EQ(refusal([] {
              const Tensor x = counting({2});
              roll(here(x), {1, 2}, {0});
            }),
            "[roll] 2 shifts for 1 axes (a.cpp:1)");
}

TEST(Triangle, KeepsOneSideOfADiagonal) {
  EXPECT_EQ(floats_of(tril(counting({2, 3}))), (Floats{0, 0, 0, 3, 4, 0}));
  EXPECT_EQ(floats_of(tril(counting({2, 3}), 1)), (Floats{0, 1, 0, 3, 4, 5}));
  EXPECT_EQ(floats_of(triu(counting({2, 3}))), (Floats{0, 1, 2, 0, 4, 5}));
  EXPECT_EQ(floats_of(triu(counting({2, 3}), -1)), floats_of(counting({2, 3})));
  EXPECT_EQ(floats_of(tril(counting({1, 2}), INT64_MIN)), (Floats{0, 0}));
  EXPECT_EQ(floats_of(triu(counting({1, 2}), INT64_MAX)), (Floats{0, 0}));
  EXPECT_EQ(refusal([] {
              const Tensor x = counting({2});
              tril(here(x));
            }),
            "[tril] needs at least two dimensions, got f32[2] (a.cpp:1)");
}

TEST(Pad, ModesOfOneRow) {
  const Tensor x = counting({4});
  EXPECT_EQ(floats_of(pad(x, {2}, {3}, "reflect")), (Floats{2, 1, 0, 1, 2, 3, 2, 1, 0}));
  EXPECT_EQ(floats_of(pad(x, {2}, {1}, "replicate")), (Floats{0, 0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(floats_of(pad(x, {1}, {2}, "circular")), (Floats{3, 0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(floats_of(pad(x, {1}, {1}, "constant", -1)), (Floats{-1, 0, 1, 2, 3, -1}));
  EXPECT_EQ(floats_of(pad(x, {1}, {1}, "constant")), (Floats{0, 0, 1, 2, 3, 0}));
}

TEST(Pad, CornersOfTwoDimensions) {
  EXPECT_EQ(floats_of(pad(counting({2, 2}), {1, 1}, {1, 0}, "reflect")), (Floats{3, 2, 3, 1, 0, 1, 3, 2, 3, 1, 0, 1}));
  EXPECT_EQ(floats_of(pad(counting({2, 2}), {1, 1}, {0, 1}, "replicate")), (Floats{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(floats_of(pad(counting({2, 2}), {1, 1}, {0, 0}, "circular")), (Floats{3, 2, 3, 1, 0, 1, 3, 2, 3}));
}

TEST(Pad, GradientCountsThePlacesThatShowAnElement) {
  const auto counts = [](const char* mode) {
    Tensor x = counting({4});
    x.requires_grad(true);
    backward(sum(pad(x, {2}, {3}, mode)));
    return floats_of(x.grad());
  };
  EXPECT_EQ(counts("reflect"), (Floats{2, 3, 3, 1}));
  EXPECT_EQ(counts("replicate"), (Floats{3, 1, 1, 4}));
  EXPECT_EQ(counts("circular"), (Floats{2, 2, 3, 2}));
  EXPECT_EQ(counts("constant"), (Floats{1, 1, 1, 1}));
}

TEST(Pad, RefusesWhatAModeCannotGive) {
  const Tensor x = counting({3}), nothing = counting({0});
  EXPECT_EQ(refusal([&] { pad(here(x), {3}, {0}, "reflect"); }),
            "[pad_mode] 3 elements give no reflect padding of 3 (a.cpp:1)");
  EXPECT_EQ(refusal([&] { pad(here(x), {0}, {4}, "circular"); }),
            "[pad_mode] 3 elements give no circular padding of 4 (a.cpp:1)");
  EXPECT_EQ(refusal([&] { pad(here(nothing), {1}, {0}, "replicate"); }),
            "[pad_mode] 0 elements give no replicate padding of 1 (a.cpp:1)");
  EXPECT_EQ(refusal([&] { pad(here(x), {1}, {0}, "mirror"); }),
            "[pad_mode] mode must be reflect, replicate or circular, not 'mirror' (a.cpp:1)");
  EXPECT_EQ(refusal([&] { pad(here(x), {-1}, {0}, "reflect"); }), "[pad_mode] padding must not be negative (a.cpp:1)");
}

TEST(Tile, RepeatsTheWhole) {
  EXPECT_EQ(floats_of(tile(counting({2}), {3})), (Floats{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(floats_of(tile(counting({2}), {2, 2})), (Floats{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(floats_of(tile(counting({2, 2}), {2})), (Floats{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(tile(counting({2, 3}), {0, 2}).shape(), (Shape{0, 6}));
  EXPECT_EQ(floats_of(repeat_interleave(counting({3}), 2, 0)), (Floats{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(floats_of(repeat_interleave(counting({2, 2}), 2, 0)), (Floats{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(refusal([] {
              const Tensor x = counting({2});
              tile(here(x), {-1});
            }),
            "[tile] cannot repeat -1 times (a.cpp:1)");
  Tensor x = counting({2});
  x.requires_grad(true);
  backward(sum(mul(tile(x, {2}), tensor({1, 2, 3, 4}))));
  EXPECT_EQ(floats_of(x.grad()), (Floats{4, 6}));
}

TEST(Split, PartsAreViewsInOrder) {
  const Tensor x = counting({5, 2});
  const std::vector<Tensor> parts = split(x, 2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(floats_of(parts[1]), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(floats_of(parts[2]), (Floats{8, 9}));
  EXPECT_EQ(parts[1].data(), static_cast<const float*>(x.data()) + 4);
  const std::vector<Tensor> uneven = split(x, std::vector<std::int64_t>{1, 0, 4}, 0);
  EXPECT_EQ(uneven[1].shape(), (Shape{0, 2}));
  EXPECT_EQ(floats_of(uneven[2]), (Floats{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(chunk(x, 2, 0)[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(chunk(x, 9, 1).size(), 2u);
  EXPECT_EQ(floats_of(unbind(x, 1)[1]), (Floats{1, 3, 5, 7, 9}));
  EXPECT_EQ(refusal([&] {
              split(here(x), std::vector<std::int64_t>{1, 5}, 0);
            }),
            "[split] the parts do not make up axis 0 of f32[5,2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              split(here(x), std::vector<std::int64_t>{1, 3}, 0);
            }),
            "[split] the parts do not make up axis 0 of f32[5,2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { split(here(x), 0); }), "[split] parts cannot have the size 0 (a.cpp:1)");
  EXPECT_EQ(refusal([&] { chunk(here(x), 0); }), "[chunk] cannot make 0 chunks (a.cpp:1)");
}

TEST(Select, OneSliceWithoutItsAxis) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(floats_of(select(x, 0, 1)), (Floats{3, 4, 5}));
  EXPECT_EQ(floats_of(select(x, 1, -1)), (Floats{2, 5}));
  EXPECT_EQ(floats_of(narrow(x, 1, 1, 2)), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(floats_of(narrow(x, 1, -2, 1)), (Floats{1, 4}));
  EXPECT_EQ(refusal([&] { select(here(x), 0, 2); }), "[select] index 2 is outside axis 0 of f32[2,3] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { narrow(here(x), 1, 2, 2); }),
            "[narrow] 2 elements from 2 on are outside axis 1 of f32[2,3] (a.cpp:1)");
}

TEST(Stack, AddsAnAxis) {
  EXPECT_EQ(floats_of(stack({tensor({1, 2}), tensor({3, 4})})), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(stack({tensor({1, 2}), tensor({3, 4})}, -1)), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(refusal([] { stack({}, 0, {"a.cpp", 1}); }), "[stack] needs at least one tensor (a.cpp:1)");
  EXPECT_EQ(refusal([] {
              stack({tensor({1}), tensor({1, 2})}, 0, {"a.cpp", 1});
            }),
            "[stack] operands differ in type: f32[1] and f32[2] (a.cpp:1)");
}

TEST(Shapes, ViewsUnderOtherShapes) {
  const Tensor x = counting({2, 1, 3});
  EXPECT_EQ(squeeze(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(x, 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(x, 0).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{2, 1, 3, 1}));
  EXPECT_EQ(unsqueeze(x, 0).shape(), (Shape{1, 2, 1, 3}));
  EXPECT_EQ(flatten(x).shape(), (Shape{6}));
  EXPECT_EQ(flatten(x, 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(flatten(x, 0, 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(flatten(scalar(1)).shape(), (Shape{1}));
  EXPECT_EQ(expand(x, {4, -1, 5, -1}).shape(), (Shape{4, 2, 5, 3}));
  EXPECT_EQ(movedim(x, 0, -1).shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(swapaxes(x, 0, 2).shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(permute(x, {2, 0, 1}).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(floats_of(movedim(counting({2, 3}), 1, 0)), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(refusal([&] { flatten(here(x), 2, 1); }), "[flatten] axis 2 comes after axis 1 (a.cpp:1)");
  EXPECT_EQ(refusal([&] { expand(here(x), {-1, 2, 1, 3}); }), "[expand] dimension 0 is new and has no size to keep (a.cpp:1)");
  EXPECT_EQ(refusal([&] { unsqueeze(here(x), 4); }), "[unsqueeze] axis 4 is outside f32[2,1,3] (a.cpp:1)");
}

TEST(Grid, CoordinatesFromAxes) {
  const std::vector<Tensor> ij = meshgrid({tensor({1, 2}), tensor({3, 4, 5})});
  EXPECT_EQ(floats_of(ij[0]), (Floats{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(floats_of(ij[1]), (Floats{3, 4, 5, 3, 4, 5}));
  const std::vector<Tensor> xy = meshgrid({tensor({1, 2}), tensor({3, 4, 5})}, "xy");
  EXPECT_EQ(xy[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(floats_of(xy[0]), (Floats{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(floats_of(xy[1]), (Floats{3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(broadcast_tensors({tensor({1, 2}), counting({3, 1})})[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(refusal([] { meshgrid({scalar(1)}, "ij", {"a.cpp", 1}); }), "[meshgrid] axes must be vectors (a.cpp:1)");
}

TEST(PixelShuffle, DealsChannelsOutAsPixels) {
  EXPECT_EQ(floats_of(pixel_shuffle(counting({1, 4, 1, 2}), 2)), (Floats{0, 2, 1, 3, 4, 6, 5, 7}));
  const Tensor x = counting({2, 8, 3, 2});
  EXPECT_TRUE(bit_equal(pixel_unshuffle(pixel_shuffle(x, 2), 2), x));
  EXPECT_EQ(floats_of(channel_shuffle(counting({1, 6}), 2)), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(refusal([&] { pixel_shuffle(here(x), 3); }),
            "[pixel_shuffle] the channels of f32[2,8,3,2] do not come in squares of 3 (a.cpp:1)");
  EXPECT_EQ(refusal([&] { channel_shuffle(here(x), 3); }),
            "[channel_shuffle] the channels of f32[2,8,3,2] do not make 3 equal groups (a.cpp:1)");
}

TEST(Arange, WholeNumbersAndFractions) {
  EXPECT_EQ(longs(arange(4)), (Longs{0, 1, 2, 3}));
  EXPECT_EQ(longs(arange(5, -1, -2)), (Longs{5, 3, 1}));
  EXPECT_EQ(arange(2, 2).shape(), Shape{0});
  EXPECT_EQ(floats_of(arange(0.0, 1.0, 0.25)), (Floats{0, 0.25f, 0.5f, 0.75f}));
  EXPECT_EQ(arange(3, DType::u8).dtype(), DType::u8);
  EXPECT_EQ(refusal([] { arange(0, 1, 0, DType::i64, {"a.cpp", 1}); }), "[arange] step must not be 0 (a.cpp:1)");
  EXPECT_EQ(refusal([] {
              arange(0, 1, 0.5, DType::i32, {"a.cpp", 1});
            }),
            "[arange] start 0 and step 0.5 are not whole numbers, as i32 needs (a.cpp:1)");
  EXPECT_EQ(refusal([] { arange(300, DType::u8, {"a.cpp", 1}); }), "[arange] 300 is outside the range of u8 (a.cpp:1)");
}

TEST(Linspace, EndsAreExact) {
  EXPECT_EQ(floats_of(linspace(0, 1, 5)), (Floats{0, 0.25f, 0.5f, 0.75f, 1}));
  EXPECT_EQ(floats_of(linspace(0.1, 0.3, 4)).back(), 0.3f);
  EXPECT_EQ(floats_of(linspace(7, 9, 1)), (Floats{7}));
  EXPECT_EQ(refusal([] { linspace(0, 1, -1, DType::f32, {"a.cpp", 1}); }), "[linspace] count must not be negative (a.cpp:1)");
}

TEST(Rearrange, RefusesWhatItCannotDo) {
  const Tensor none, two = counting({2}), row = counting({1, 4}), image = counting({4, 2, 2});
  const auto of_none = [](const std::string& op) { return "[" + op + "] the operand is undefined (a.cpp:1)"; };
  EXPECT_EQ(refusal([&] { roll(here(none), {1}); }), of_none("roll"));
  EXPECT_EQ(refusal([&] { select(here(none), 0, 0); }), of_none("select"));
  EXPECT_EQ(refusal([&] { split(here(none), 1); }), of_none("split"));
  EXPECT_EQ(refusal([&] { roll(here(two), {1, 2}); }), "[roll] 2 shifts without axes (a.cpp:1)");
  EXPECT_EQ(refusal([&] { repeat_interleave(here(two), std::int64_t{1} << 62, 0); }),
            "[repeat_interleave] cannot repeat 4611686018427387904 times (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              split(here(two), std::vector<std::int64_t>{3, -1});
            }),
            "[split] the parts do not make up axis 0 of f32[2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              split(here(two), std::vector<std::int64_t>{-1, 3});
            }),
            "[split] the parts do not make up axis 0 of f32[2] (a.cpp:1)");
  for (const auto& range : {std::pair{-3, 1}, {3, 0}, {0, -1}, {1, 2}})
    EXPECT_EQ(refusal([&] { narrow(here(two), 0, range.first, range.second); }),
              "[narrow] " + std::to_string(range.second) + " elements from " + std::to_string(range.first) +
                  " on are outside axis 0 of f32[2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { select(here(two), 0, -3); }), "[select] index -3 is outside axis 0 of f32[2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { stack({}, 0, {"a.cpp", 1}); }), "[stack] needs at least one tensor (a.cpp:1)");
  EXPECT_EQ(refusal([&] { stack({none}, 0, {"a.cpp", 1}); }), "[stack] needs at least one tensor (a.cpp:1)");
  EXPECT_EQ(refusal([&] { stack({two, none}, 0, {"a.cpp", 1}); }), "[stack] an operand is undefined (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              broadcast_tensors({two, none}, {"a.cpp", 1});
            }),
            "[broadcast_tensors] an operand is undefined (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              broadcast_tensors({two, counting({3})}, {"a.cpp", 1});
            }),
            "[broadcast_tensors] [3] does not broadcast with [2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { meshgrid({two}, "yx", {"a.cpp", 1}); }), "[meshgrid] indexing must be ij or xy, not 'yx' (a.cpp:1)");
  EXPECT_EQ(refusal([&] { meshgrid({row}, "ij", {"a.cpp", 1}); }), "[meshgrid] axes must be vectors (a.cpp:1)");
  EXPECT_EQ(refusal([&] { meshgrid({none}, "ij", {"a.cpp", 1}); }), "[meshgrid] axes must be vectors (a.cpp:1)");
  for (const std::int64_t factor : {std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 21}) {
    EXPECT_EQ(refusal([&] { pixel_shuffle(here(image), factor); }),
              "[pixel_shuffle] the channels of f32[4,2,2] do not come in squares of " + std::to_string(factor) + " (a.cpp:1)");
    EXPECT_EQ(refusal([&] { pixel_unshuffle(here(image), factor); }),
              "[pixel_unshuffle] f32[4,2,2] does not come in squares of " + std::to_string(factor) + " (a.cpp:1)");
  }
  EXPECT_EQ(refusal([&] { pixel_shuffle(here(row), 1); }),
            "[pixel_shuffle] needs at least three dimensions, got f32[1,4] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { pixel_unshuffle(here(row), 1); }),
            "[pixel_unshuffle] needs at least three dimensions, got f32[1,4] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { channel_shuffle(here(two), 1); }),
            "[channel_shuffle] needs at least two dimensions, got f32[2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { channel_shuffle(here(row), 0); }),
            "[channel_shuffle] the channels of f32[1,4] do not make 0 equal groups (a.cpp:1)");
}

// What lies at the edge of these functions and is allowed: no repetition, parts of an empty axis, and a grid of three axes.
TEST(Rearrange, AcceptsTheSmallestCases) {
  EXPECT_EQ(floats_of(repeat_interleave(counting({3}), 1, 0)), (Floats{0, 1, 2}));
  EXPECT_EQ(floats_of(roll(counting({3}), {3}, {0})), (Floats{0, 1, 2}));
  const std::vector<Tensor> parts = split(counting({0, 2}), 4);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].shape(), (Shape{0, 2}));
  const std::vector<Tensor> one = meshgrid({counting({2})}, "xy");
  EXPECT_EQ(floats_of(one[0]), (Floats{0, 1}));
  const std::vector<Tensor> grid = meshgrid({counting({2}), counting({3}), counting({2})}, "xy");
  EXPECT_EQ(grid[0].shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(floats_of(grid[2]), (Floats{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
}

TEST(Create, LikeAnother) {
  EXPECT_EQ(floats_of(eye(2, 3)), (Floats{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(longs(full_like(arange(2), 7)), (Longs{7, 7}));
  EXPECT_EQ(floats_of(ones_like(counting({2}))), (Floats{1, 1}));
  EXPECT_EQ(floats_of(zeros_like(counting({2}))), (Floats{0, 0}));
}

}  // namespace
}  // namespace tapedeck
