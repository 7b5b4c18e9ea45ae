// Measurements in pictures: the bytes that a replay held, over those that the plan promises; and measured points beside planned
// ones. This file uses ImGui only.
#pragma once

#include <tapedeck/viewer/panels/plot.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// One line about the measurements of the shown plan: its measured peak and most live bytes, with their deviations from the plan
// in percent, and the time of a step. If another plan was measured, the line says only so. Without measurements it is empty.
std::string measured_summary(const Session& session);

// Draws the bytes that a replay of the shown plan held while each node ran, its peak, and the summary above the plot. Without
// measurements it draws nothing. REQUIRES: the session shows a plan, and the plot is that of its live bytes.
void draw_measured_bytes(const Plot& plot, const Session& session);

// Draws each measured point of cost over peak, with a line to its planned point and a line from the fastest to the slowest of
// its steps. Adds the points to `marks`.
void draw_measured_points(const Plot& plot, const std::vector<MeasuredPoint>& points, std::vector<TradeoffMark>* marks);
// Draws the points as a list: peak, measured cost, planned cost, deviation. Returns the height used; 0 if there are none.
float draw_measured_list(float x, float y, float width, const ByteUnit& unit, const std::vector<MeasuredPoint>& points);

}  // namespace tapedeck::viewer
