// The marked range of the curve of live bytes, and the box that sums it up.
#pragma once

#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/plan/range_totals.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// The text of the box, in the unit of the picture.
struct RangeText {
  std::vector<std::string> lines;              // which nodes, how long they take, and between which bounds the bytes are
  std::vector<std::vector<std::string>> rows;  // the first are the titles of the columns; roles without any bytes are left out
};
RangeText range_text(const PlanModel& model, const RangeTotals& totals);

// Where the box stands: beside the marked range, on the side with more room. Where it fits on neither side, it loses its rows;
// where it still does not fit, it stands above the plot, so that it never hides the range.
struct RangeBox {
  RangeText text;
  float left = 0, top = 0, width = 0, height = 0;
  float above = 0;  // the height that the box takes above the plot; 0: it stands beside the range
};
// `plot`: without the box. `width`: of the canvas.
RangeBox place_range_box(const Plot& plot, float width, const PlanModel& model, const RangeTotals& totals);

// Draws the marked range into a plot, which begins box.above further down than the plot that the box was placed for, and the
// box.
void draw_range_box(const Plot& plot, const RangeBox& box, const NodeRange& range);

}  // namespace tapedeck::viewer
