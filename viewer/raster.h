// Draws Dear ImGui's triangles into memory, without OpenGL, Qt or a display.
//
// Coverage follows the rule of graphics hardware, exactly: vertices are rounded to 1/16 of a pixel, a pixel is drawn when its
// centre is inside the triangle, and a centre on an edge belongs to the triangle on its lower right, so that triangles that
// share an edge neither overlap nor leave a gap. Two triangles that make an upright rectangle of one colour, and letters, take
// a shorter way that gives the same pixels. Textures are read at the nearest texel: text is drawn at whole pixels and loses
// nothing.
#pragma once

#include <cstdint>

struct ImDrawData;

namespace tapedeck::viewer {

struct Pixels {  // 4 bytes a pixel: red, green, blue, alpha; rows without gaps
  std::uint32_t* data = nullptr;
  int width = 0, height = 0;
};

struct AlphaTexture {  // one byte a texel: the font atlas
  const std::uint8_t* data = nullptr;
  int width = 0, height = 0;
};

// Blends over what is there; `target` should be opaque and stays so. Vertices far outside or not finite are safe.
void rasterize(const ImDrawData& draw_data, const AlphaTexture& texture, const Pixels& target);

}  // namespace tapedeck::viewer
