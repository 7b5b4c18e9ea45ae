// Tests that frames drawn over the frames before them have the pixels of frames drawn from the start.
#include <tapedeck/tests/viewer/drawing/raster_scene.h>

#include <tapedeck/viewer/drawing/frame_raster.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tapedeck::viewer {
namespace {

struct Box {
  float x0, y0, x1, y1;
  ImU32 colour;
};

// Boxes over each other, half transparent, so that their order matters; every third one is a single triangle.
Scene scene_of(const std::vector<Box>& boxes) {
  Scene scene;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box& b = boxes[i];
    const int first = scene.list().VtxBuffer.Size;
    scene.vertex(b.x0, b.y0, b.colour), scene.vertex(b.x1, b.y0, b.colour), scene.vertex(b.x1, b.y1, b.colour);
    if (i % 3 == 2) continue;
    scene.index(first), scene.index(first + 2);
    scene.vertex(b.x0, b.y1, b.colour);
  }
  return scene;
}

Box random_box(std::mt19937& random, int most) {
  const auto at = [&](int size) { return static_cast<float>(random() % static_cast<unsigned>(16 * (size + 8))) / 16 - 4; };
  const auto length = [&] { return static_cast<float>(random() % static_cast<unsigned>(16 * most)) / 16; };
  const float x = at(kWidth), y = at(kHeight);
  return {x, y, x + length(), y + length(), 0x80000000u | (static_cast<ImU32>(random()) & 0xffffffu)};
}

struct Drawn {
  std::vector<std::uint32_t> pixels = std::vector<std::uint32_t>(static_cast<std::size_t>(kWidth) * kHeight);
  FrameRaster raster;
  const std::vector<PixelBox>& draw(Scene scene) {
    return raster.draw(scene.data(), {}, kBlack, {pixels.data(), kWidth, kHeight});
  }
};

std::int64_t area(const std::vector<PixelBox>& boxes) {
  std::int64_t sum = 0;
  for (const PixelBox& b : boxes) sum += static_cast<std::int64_t>(b.x1 - b.x0) * (b.y1 - b.y0);
  return sum;
}

TEST(FrameRaster, FramesHaveThePixelsOfFramesDrawnFromTheStart) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<Box> boxes;
    for (int i = 0; i < 20; ++i) boxes.push_back(random_box(random, i < 3 ? kWidth : 12));
    Drawn drawn;
    for (int frame = 0; frame < 12; ++frame) {
      drawn.draw(scene_of(boxes));
      ASSERT_EQ(drawn.pixels, scene_of(boxes).draw()) << "seed " << seed << ", frame " << frame;
      const std::size_t one = random() % boxes.size(), other = random() % boxes.size();
      if (frame % 4 == 0) boxes[one] = random_box(random, 12);
      if (frame % 4 == 1) std::swap(boxes[one], boxes[other]);  // the same boxes in another order
      if (frame % 4 == 2) boxes[one].colour ^= 1;
    }
  }
}

TEST(FrameRaster, OnlyThePartsThatChangedAreDrawn) {
  Drawn drawn;
  std::vector<Box> boxes = {{0, 0, kWidth, kHeight, 0xff203040u}, {2, 2, 5, 5, 0xff0000ffu}, {40, 36, 50, 42, 0xff00ff00u}};
  EXPECT_EQ(area(drawn.draw(scene_of(boxes))), kWidth * kHeight);
  EXPECT_EQ(area(drawn.draw(scene_of(boxes))), 0);
  boxes[1].colour = 0xff00ffffu;
  const std::vector<PixelBox> changed = drawn.draw(scene_of(boxes));
  EXPECT_GT(area(changed), 0);
  EXPECT_LT(area(changed), kWidth * kHeight / 2);
  const bool holds_it =
      std::any_of(changed.begin(), changed.end(), [](const PixelBox& b) { return b.x0 <= 2 && b.x1 >= 5 && b.y0 <= 2; });
  EXPECT_TRUE(holds_it);
}

TEST(FrameRaster, OtherMemoryAnotherGroundAndForgettingDrawTheWholeFrame) {
  Drawn drawn;
  const std::vector<Box> boxes = {{2, 2, 5, 5, 0xff0000ffu}};
  drawn.draw(scene_of(boxes));
  std::vector<std::uint32_t> other(drawn.pixels.size());
  Scene scene = scene_of(boxes);
  EXPECT_EQ(area(drawn.raster.draw(scene.data(), {}, kBlack, {other.data(), kWidth, kHeight})), kWidth * kHeight);
  EXPECT_EQ(other, drawn.pixels);
  EXPECT_EQ(area(drawn.raster.draw(scene.data(), {}, 0xff000001u, {other.data(), kWidth, kHeight})), kWidth * kHeight);
  EXPECT_EQ(other[0], 0xff000001u);
  drawn.raster.forget();
  EXPECT_EQ(area(drawn.raster.draw(scene.data(), {}, 0xff000001u, {other.data(), kWidth, kHeight})), kWidth * kHeight);
  EXPECT_EQ(area(drawn.raster.draw(scene.data(), {}, 0xff000001u, {other.data(), kWidth / 2, kHeight})), kWidth / 2 * kHeight);
}

TEST(FrameRaster, VerticesFarAwayOrNotFiniteAreSafe) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  Drawn drawn;
  for (const float a : {nan, inf, -inf, 1e30f, -1e30f, 5.0f})
    for (const float b : {nan, inf, -inf, 1e30f, -1e30f, 9.0f}) {
      const std::vector<Box> boxes = {{a, b, 10, 10, 0xff0000ffu}, {3, a, b, 20, 0xff00ff00u}, {a, a, b, b, 0xffff0000u}};
      drawn.draw(scene_of(boxes));
      ASSERT_EQ(drawn.pixels, scene_of(boxes).draw());
    }
}

}  // namespace
}  // namespace tapedeck::viewer
