// The memory plan: every value is a rectangle of addresses x time, coloured by its role, its module or its op.
//
// The workspace of a loop or a branch opens: the panel then draws one run of a region by its own plan. Above it stand the way
// back, and the workspace of the node in the plan around it: index, frame, tape of checkpoints.
#pragma once

#include <tapedeck/viewer/panels/chain_marks.h>
#include <tapedeck/viewer/panels/minimap.h>
#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/planning/lod_task.h>
#include <tapedeck/viewer/planning/region_session.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace tapedeck::viewer {

// Draws the rectangles, their names and the limits; handles no input. The level of detail is kept from frame to frame; while
// that of a large plan is made anew in the background, the one before is drawn where it belongs.
class MemoryPlot {
 public:
  // `wake` asks for another frame, from any thread; without it, all is made at once.
  explicit MemoryPlot(std::function<void()> wake = {}) : lod_(std::move(wake)) {}

  void draw(const Plot& plot, const std::shared_ptr<const PlanModel>& model, const PlanColours& colours,
            const Selection& selection);
  // Draws the edges of the rectangles alone, over another plan.
  void draw_edges(const Plot& plot, const std::shared_ptr<const PlanModel>& model, Colour colour);
  // The rectangle at a point of the last frame, or null.
  const LodRect* hit(const ImVec2& point) const;
  LodTask& lod() { return lod_; }
  const LodTask& lod() const { return lod_; }

 private:
  void update(const Plot& plot, const std::shared_ptr<const PlanModel>& model);
  std::pair<ImVec2, ImVec2> corners(const LodRect& r) const;
  void draw_rect(const PlanModel& model, const PlanColours& colours, const LodRect& r, float pixel) const;
  void outline(const PlanModel& model, ValueId v, Colour colour, float thickness) const;
  void draw_chain(const PlanModel& model, const Selection& selection) const;

  Plot plot_;
  float scale_ = 1;
  bool is_of_model_ = false;  // the level of detail is of the model that is drawn, and of its axis
  ChainMarks chain_;
  LodTask lod_;  // the last member: its destructor joins a thread
};

// The panel: the plot with axes, legend, tooltip, navigation and the minimap.
class MemoryPanel : public PicturePanel {
 public:
  explicit MemoryPanel(Session& session);
  void draw(float width, float height) override;
  void closed() override;
  void settle() override { picture_.lod().finish(); }
  void finish() override;
  void stop() override;
  bool move_view(ViewMove move) override;            // false: the view is that of the session
  void write_csv(const std::string& path) override;  // the rectangles, of the region if one is shown; throws FileError
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
  void restore_region(const SavedRegion& region);  // as a session file has it
  // The level of detail of the last frame is there.
  bool is_fresh() const { return picture_.lod().is_fresh(); }

 private:
  void ask_for_frame() const;
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
