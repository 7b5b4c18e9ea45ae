// Level of detail: the part of a plan that is drawn at a zoom. make_lod() drops rectangles out of view, rounds the others to
// pixels, and merges rectangles that are thinner than a pixel and start at the same pixel; a merged rectangle keeps the count
// and the bytes. The drawn pixels cover every rectangle in view. The same pass fills a buffer of ids, so that hit() finds the
// rectangle under the cursor exactly, in O(1).
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck::viewer {

// A rectangle as drawn, perhaps merged from several.
struct LodRect {
  std::int32_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // pixels, [x0, x1) x [y0, y1), y downwards
  std::int32_t rect = -1;                       // index of the longest of the merged rectangles
  std::int32_t count = 1;
  std::int64_t bytes = 0;
};

// All drawn rectangles of one frame. Sizes are pixels.
struct LodFrame {
  std::int32_t width = 0, height = 0;
  std::vector<LodRect> rects;     // in drawing order
  std::vector<std::int32_t> ids;  // by pixel: index into rects, -1 = nothing

  std::int32_t hit(std::int32_t x, std::int32_t y) const {
    if (x < 0 || y < 0 || x >= width || y >= height) return -1;
    return ids[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
  }
};

// `view.time` are positions on `axis`. Cost: O(rects + pixels covered). Sizes below one pixel give an empty frame.
LodFrame make_lod(std::span<const PlanRect> rects, const PlanView& view, std::int32_t width, std::int32_t height,
                  const TimeAxis& axis = {});
// The same into a frame that is there already. A picture that moves with the hand uses the memory of the frame before.
void make_lod(std::span<const PlanRect> rects, const PlanView& view, std::int32_t width, std::int32_t height,
              const TimeAxis& axis, LodFrame* frame);

}  // namespace tapedeck::viewer
