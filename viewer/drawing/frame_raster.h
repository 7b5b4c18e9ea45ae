// Draws the frames of one picture into one image, and draws again only where a frame differs from the frame before. Most frames
// differ little: the mouse moves, and an outline and a tooltip move with it.
//
//     frame 1   . . . . . .     The image is divided into cells. Each cell has a number made from all triangles that touch
//     frame 2   . . # # . .     the cell, in their order. Where the number is the same, the pixels are the same; the other
//               . . # # . .     cells (#) are cleared and drawn.
//
// The pixels are those that rasterize() (raster.h) draws into a cleared image. Two different cells have the same number by an
// accident of 64 bits only.
#pragma once

#include <tapedeck/viewer/drawing/raster.h>

#include <cstdint>
#include <vector>

namespace tapedeck::viewer {

// Not thread safe.
class FrameRaster {
 public:
  // Draws a frame over the colour `ground`. `target` holds the frame that was drawn before, if it is the same memory of the
  // same size; else the whole frame is drawn. Returns the parts that were drawn. They do not overlap, and are valid until the
  // next frame. Cost: O(triangles + pixels of these parts).
  const std::vector<PixelBox>& draw(const ImDrawData& draw_data, const AlphaTexture& texture, std::uint32_t ground,
                                    const Pixels& target);
  void forget() { cells_.clear(); }  // the next frame is drawn as a whole; call it after the content of the texture changed

 private:
  Pixels target_;
  std::uint32_t ground_ = 0;
  std::vector<std::uint64_t> cells_, before_;
  std::vector<PixelBox> changed_;
};

}  // namespace tapedeck::viewer
