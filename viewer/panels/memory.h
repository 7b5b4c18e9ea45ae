// The memory plan: every value is a rectangle of addresses x time, coloured by its role, its module or its op.
//
// The workspace of a loop or a branch opens: the panel then draws one run of a region by its own plan. Above it stand the way
// back, and the workspace of the node in the plan around it: index, frame, tape of checkpoints.
#pragma once

#include <tapedeck/viewer/panels/chain_marks.h>
#include <tapedeck/viewer/panels/minimap.h>
#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/planning/region_session.h>

#include <optional>

namespace tapedeck::viewer {

// Draws the rectangles, their names and the limits; handles no input. The level of detail is kept from frame to frame.
class MemoryPlot {
 public:
  void draw(const Plot& plot, const PlanModel& model, const PlanColours& colours, const Selection& selection);
  // Draws the edges of the rectangles alone, over another plan.
  void draw_edges(const Plot& plot, const PlanModel& model, Colour colour);
  // The rectangle at a point of the last frame, or null.
  const LodRect* hit(const ImVec2& point) const;

 private:
  void update(const Plot& plot, const PlanModel& model);
  void draw_rect(const PlanModel& model, const PlanColours& colours, const LodRect& r, float pixel) const;
  void outline(const PlanModel& model, ValueId v, Colour colour, float thickness) const;
  void draw_chain(const PlanModel& model, const Selection& selection) const;

  Plot plot_;
  float scale_ = 1;
  std::uint64_t model_ = 0;  // the serial number of the model
  LodFrame lod_;
  ChainMarks chain_;
};

// The panel: the plot with axes, legend, tooltip, navigation and the minimap.
class MemoryPanel : public PicturePanel {
 public:
  explicit MemoryPanel(Session& session);
  void draw(float width, float height) override;
  void closed() override;
  void finish() override { regions_.finish(); }
  void stop() override { regions_.stop(); }
  bool move_view(ViewMove move) override;  // false: the view is that of the session
  // The place of a value of the shown plan on the canvas in the last frame, in units, for tests.
  std::optional<ImVec2> place_of(ValueId v) const;
  std::optional<ImVec2> place_of_workspace(NodeId n) const;
  const Minimap& minimap() const { return minimap_; }
  void turn_minimap(bool on);

  // The functions that commands call: as those of the graph.
  bool enter_selection();
  bool leave(std::size_t depth);
  std::size_t depth() const { return regions_.depth(); }
  const RegionSession& regions() const { return regions_; }

 private:
  float draw_heading(float width);
  float draw_workspace(float y, float width);
  void draw_bands(const PlanModel& model) const;
  void answer_mouse(Session& shown);
  std::optional<ImVec2> place_of_rect(const PlanRect& rect) const;

  Plot plot_;
  MemoryPlot picture_;
  Navigation navigation_;
  BudgetHandle budget_;
  Minimap minimap_;
  bool hovers_ = false;    // the mouse was in the plot in the last frame
  RegionSession regions_;  // the last member: its destructor joins a thread
};

}  // namespace tapedeck::viewer
