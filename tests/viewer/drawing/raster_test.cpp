// Tests the rasteriser. For every pixel the oracle decides in exact integers whether the pixel's centre is in the triangle.
#include <tapedeck/tests/viewer/drawing/raster_scene.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tapedeck::viewer {
namespace {

// If a pixel's centre is on the shared edge of two triangles, the pixel belongs to the triangle on the right or below. The
// function moves the point slightly to decide.
bool inside(const std::int64_t (&x)[3], const std::int64_t (&y)[3], std::int64_t px, std::int64_t py) {
  const std::int64_t area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]);
  if (area == 0) return false;
  for (int i = 0; i < 3; ++i) {
    const int a = i, b = (i + 1) % 3;
    std::int64_t side = (x[b] - x[a]) * (py - y[a]) - (px - x[a]) * (y[b] - y[a]);
    // Moves a centre on the edge slightly to the right, and by an even smaller distance down.
    std::int64_t nudge = -(y[b] - y[a]);
    if (nudge == 0) nudge = x[b] - x[a];
    if (area < 0) side = -side, nudge = -nudge;
    if (side < 0 || (side == 0 && nudge < 0)) return false;
  }
  return true;
}

TEST(Raster, EveryPixelOfRandomTrianglesAgreesWithTheOracle) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const ImVec4 clip(static_cast<float>(random() % 10), static_cast<float>(random() % 10),
                      static_cast<float>(30 + random() % 40), static_cast<float>(20 + random() % 40));
    Scene scene(clip);
    std::int64_t x[3], y[3];
    for (int i = 0; i < 3; ++i) {
      // Coordinates in sixteenths of a pixel. Some are pixel centres, some lie far outside.
      const int spread = seed % 7 == 0 ? 40000 : 1400;
      x[i] = static_cast<std::int64_t>(random() % static_cast<unsigned>(spread)) - spread / 5;
      y[i] = static_cast<std::int64_t>(random() % static_cast<unsigned>(spread)) - spread / 5;
      if (seed % 3 == 0) x[i] = x[i] / 8 * 8, y[i] = y[i] / 8 * 8;
      scene.vertex(static_cast<float>(x[i]) / 16, static_cast<float>(y[i]) / 16, 0xff332211u);
    }
    const auto pixels = scene.draw();
    for (int py = 0; py < kHeight; ++py)
      for (int px = 0; px < kWidth; ++px) {
        const bool clipped = px < clip.x || py < clip.y || px >= clip.z || py >= clip.w;
        const bool expected = !clipped && inside(x, y, px * 16 + 8, py * 16 + 8);
        ASSERT_EQ(pixels[py * kWidth + px], expected ? 0xff332211u : kBlack) << "seed " << seed << " at " << px << "," << py;
      }
  }
}

TEST(Raster, TwoTrianglesOfARectangleGiveTheSamePixelsAsTheShortWay) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto coordinate = [&] { return static_cast<float>(random() % 800) / 16 - 4; };
    float x0 = coordinate(), x1 = coordinate(), y0 = coordinate(), y1 = coordinate();
    if (x0 > x1) std::swap(x0, x1);
    if (y0 > y1) std::swap(y0, y1);
    const ImU32 colour = 0x80ff4020u;  // half transparent, so that a pixel drawn twice looks different
    Scene quick, slow;
    for (Scene* s : {&quick, &slow}) {
      s->vertex(x0, y0, colour);
      s->vertex(x1, y0, colour);
      s->vertex(x1, y1, colour);
    }
    quick.index(0), quick.index(2);
    quick.vertex(x0, y1, colour);
    // vertices are not shared, so the general way is used
    slow.vertex(x0, y0, colour), slow.vertex(x1, y1, colour), slow.vertex(x0, y1, colour);
    ASSERT_EQ(quick.draw(), slow.draw()) << "seed " << seed;
  }
}

TEST(Raster, AFanOfTrianglesLeavesNoGapAndNoSeam) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    Scene scene;
    const float cx = 10 + static_cast<float>(random() % 640) / 16, cy = 8 + static_cast<float>(random() % 400) / 16;
    const int n = 3 + static_cast<int>(random() % 12);
    for (int i = 0; i < n; ++i) {
      const auto corner = [&](int k) {
        const double angle = 2 * 3.14159265358979 * (k % n) / n;
        scene.vertex(cx + static_cast<float>(200 * std::cos(angle)), cy + static_cast<float>(200 * std::sin(angle)),
                     0x80ffffffu);
      };
      scene.vertex(cx, cy, 0x80ffffffu);
      corner(i);
      corner(i + 1);
    }
    for (std::uint32_t pixel : scene.draw()) ASSERT_EQ(pixel, 0xff808080u) << "seed " << seed;
  }
}

TEST(Raster, ColoursAreInterpolatedLinearly) {
  Scene scene;
  scene.vertex(0, 0, 0xff000000u);
  scene.vertex(kWidth, 0, 0xff0000ffu);
  scene.vertex(0, kHeight, 0xff00ff00u);
  const auto pixels = scene.draw();
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double s = (x + 0.5) / kWidth, t = (y + 0.5) / kHeight;
      if (s + t > 0.99) continue;
      const std::uint32_t pixel = pixels[y * kWidth + x];
      EXPECT_NEAR(pixel & 255, 255 * s, 1.01);
      EXPECT_NEAR(pixel >> 8 & 255, 255 * t, 1.01);
    }
}

TEST(Raster, LettersAreCopiedTexelByTexel) {
  std::vector<std::uint8_t> texels(16 * 16);
  std::mt19937 random(5);
  for (auto& t : texels) t = static_cast<std::uint8_t>(random());
  Scene scene;
  const float u0 = 2 / 16.0f, u1 = 9 / 16.0f, v0 = 3 / 16.0f, v1 = 11 / 16.0f;
  scene.vertex(20, 10, 0xffffffffu, u0, v0);
  scene.vertex(27, 10, 0xffffffffu, u1, v0);
  scene.vertex(27, 18, 0xffffffffu, u1, v1);
  scene.index(0), scene.index(2);
  scene.vertex(20, 18, 0xffffffffu, u0, v1);
  const auto pixels = scene.draw(1, {texels.data(), 16, 16});
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 7; ++x) EXPECT_EQ(pixels[(10 + y) * kWidth + 20 + x] & 255, texels[(3 + y) * 16 + 2 + x]);
}

TEST(Raster, ScaleAndVertexOffsetAreHonoured) {
  Scene scene;
  scene.vertex(-100, -100, 0xffffffffu);  // the vertex offset skips this vertex
  scene.vertex(1, 1, 0xff0000ffu), scene.vertex(3, 1, 0xff0000ffu), scene.vertex(3, 3, 0xff0000ffu);
  scene.index(1), scene.index(3);
  scene.vertex(1, 3, 0xff0000ffu);
  ImDrawCmd& cmd = scene.command();
  cmd.VtxOffset = 1;
  cmd.IdxOffset = 1;
  cmd.ElemCount = 6;
  for (int i = 1; i < scene.list().IdxBuffer.Size; ++i) --scene.list().IdxBuffer[i];
  const auto pixels = scene.draw(2);
  int red = 0;
  for (std::uint32_t pixel : pixels) red += pixel == 0xff0000ffu ? 1 : 0;
  EXPECT_EQ(red, 16);
  EXPECT_EQ(pixels[2 * kWidth + 2], 0xff0000ffu);
}

TEST(Raster, VerticesFarAwayOrNotFiniteAreSafe) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float bad[] = {nan, inf, -inf, 1e30f, -1e30f, 0, 30};
  for (float a : bad)
    for (float b : bad) {
      Scene scene(ImVec4(a, b, 1e30f, b));
      scene.vertex(a, b, 0xffffffffu, a, b), scene.vertex(b, 0, 0xff00ffffu), scene.vertex(10, a, 0xffffffffu);
      scene.draw();
      Scene box;
      box.vertex(a, a, 0xffffffffu, nan, 0), box.vertex(b, a, 0xffffffffu, inf, 0), box.vertex(b, b, 0xffffffffu, inf, a);
      box.index(0), box.index(2);
      box.vertex(a, b, 0xffffffffu, nan, a);
      const std::uint8_t texel = 255;
      box.draw(1, {&texel, 1, 1});
    }
}

}  // namespace
}  // namespace tapedeck::viewer
