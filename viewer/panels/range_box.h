// The marked range of the curve of live bytes, and the box that sums it up.
#pragma once

#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/plan/range_totals.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// The rows of the box, the first of them the titles of the columns; roles without any bytes are left out.
std::vector<std::vector<std::string>> range_rows(const RangeTotals& totals);
// The lines above the rows: which nodes, and between which bounds.
std::vector<std::string> range_lines(const RangeTotals& totals);

// Draws both into a plot of the curve. The box stands beside the range where there is room.
void draw_range_box(const Plot& plot, const RangeTotals& totals);

}  // namespace tapedeck::viewer
