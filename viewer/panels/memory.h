// The memory plan: every value as a rectangle of addresses x time, coloured by its role.
#pragma once

#include <tapedeck/viewer/panels/plot.h>

#include <optional>

namespace tapedeck::viewer {

// The rectangles, their names, the limits; no interaction. Keeps the level of detail between frames.
class MemoryPlot {
 public:
  void draw(const Plot& plot, const PlanModel& model, const Selection& selection);
  // What is at a point of the last frame; null: nothing.
  const LodRect* hit(const ImVec2& point) const;

 private:
  void update(const Plot& plot, const PlanModel& model);
  void draw_rect(const PlanModel& model, const LodRect& r, float pixel) const;
  void outline(const PlanModel& model, ValueId v, Colour colour, float thickness) const;

  Plot plot_;
  float scale_ = 1;
  std::uint64_t model_ = 0;  // serial
  LodFrame lod_;
};

class MemoryPanel : public PicturePanel {
 public:
  using PicturePanel::PicturePanel;
  void draw(float width, float height) override;
  // Where a value is on the canvas, in units, in the last frame. For tests.
  std::optional<ImVec2> place_of(ValueId v) const;

 private:
  Plot plot_;
  MemoryPlot picture_;
  Navigation navigation_;
};

}  // namespace tapedeck::viewer
