// The curve of live bytes over the schedule, stacked by role, module or op, with lines for the peak of the plan and the budget,
// and the outline of the plan that keeps everything. The line of the budget can be dragged. A drag with the left button marks
// nodes, and a box sums up what happens to the bytes there; a click on the marker of the peak selects its node.
#pragma once

#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/panels/range_box.h>
#include <tapedeck/viewer/plan/range_totals.h>

#include <optional>

namespace tapedeck::viewer {

// Draws the curve of a model into a plot, stacked by the layers of the colours, with the selected and hovered value marked.
void draw_curve(const Plot& plot, const PlanModel& model, const PlanColours& colours, const Selection& selection);
// Draws the outline of another plan of the same step: live_bytes_along() it, and their maxima.
void draw_outline(const Plot& plot, const std::vector<std::int64_t>& bytes, const BlockMaxima& maxima, Colour colour);
// The upper end of the byte axis: some space above the peak of keeping everything, so that a smaller plan looks smaller.
double curve_top(const Plan& plan);

// The panel: the curve with axes, legend, tooltip and navigation.
class CurvePanel : public PicturePanel {
 public:
  using PicturePanel::PicturePanel;
  void draw(float width, float height) override;
  void write_csv(const std::string& path) override;  // planned and measured, a line for each node; throws FileError
  ImVec2 place_of(NodeId n) const;                   // the place of a node on the canvas in the last frame, for tests
  ImVec2 place_of_bytes(std::int64_t bytes) const;   // in the middle of the plot
  ImVec2 place_of_peak() const;                      // of the marker; REQUIRES a plan with nodes

 private:
  const std::vector<std::int64_t>& outline();
  void drag_range();
  const RangeTotals& totals();
  Plot lay_out(float width, float height);
  bool on_peak_marker() const;

  Plot plot_;
  Navigation navigation_{Navigation::LeftDrag::selects};
  std::optional<RangeBox> box_;  // where a range is marked
  RangeTotals totals_;           // of the range of the session
  std::uint64_t totals_of_ = 0;
  BudgetHandle budget_;
  std::vector<std::int64_t> outline_;
  BlockMaxima outline_maxima_;
  std::uint64_t outline_of_ = 0, outline_along_ = 0;  // serial numbers of the models
};

}  // namespace tapedeck::viewer
