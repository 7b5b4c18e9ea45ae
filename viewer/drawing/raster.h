// Draws the triangles of Dear ImGui into memory, without OpenGL, Qt or a display.
//
// The pixels of a triangle are exactly those of graphics hardware. Vertices are rounded to 1/16 of a pixel. A pixel is drawn if
// its centre is inside the triangle. A centre on an edge belongs to the triangle on the lower right of the edge, so that
// triangles that share an edge neither overlap nor leave a gap. Two triangles that form an upright rectangle of one colour, and
// letters, are drawn by a faster method with the same pixels. Textures are read at the nearest texel; text lies at whole
// pixels, so it stays sharp.
#pragma once

#include <cstdint>

struct ImDrawData;

namespace tapedeck::viewer {

struct Pixels {  // 4 bytes per pixel: red, green, blue, alpha; rows without gaps
  std::uint32_t* data = nullptr;
  int width = 0, height = 0;
};

struct PixelBox {  // the pixels [x0, x1) x [y0, y1)
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

struct AlphaTexture {  // one byte per texel: the font atlas
  const std::uint8_t* data = nullptr;
  int width = 0, height = 0;
};

// Blends the triangles over the content of `target`. An opaque target stays opaque. Vertices far outside the target, or not
// finite, are safe.
void rasterize(const ImDrawData& draw_data, const AlphaTexture& texture, const Pixels& target);
// The same for the pixels of `part`, which must lie in the target; the other pixels stay as they are.
void rasterize(const ImDrawData& draw_data, const AlphaTexture& texture, const Pixels& target, const PixelBox& part);

}  // namespace tapedeck::viewer
