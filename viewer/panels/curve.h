// The curve of live bytes over the schedule, stacked by role, with lines for the peak of the plan and the budget.
#pragma once

#include <tapedeck/viewer/panels/plot.h>

namespace tapedeck::viewer {

// Draws the curve of a model into a plot, with the selected and hovered value marked.
void draw_curve(const Plot& plot, const PlanModel& model, const Selection& selection);
// The upper end of the byte axis: some space above the peak, and above the budget if it is at most half as high again.
double curve_top(const Plan& plan);

// The panel: the curve with axes, legend, tooltip and navigation.
class CurvePanel : public PicturePanel {
 public:
  using PicturePanel::PicturePanel;
  void draw(float width, float height) override;
  ImVec2 place_of(NodeId n) const;  // the place of a node on the canvas in the last frame, for tests

 private:
  Plot plot_;
  Navigation navigation_;
};

}  // namespace tapedeck::viewer
