// Two plans side by side, or one over the other, drawn to the same scales: two memory plans and two curves of live bytes.
#pragma once

#include <tapedeck/viewer/panels/memory.h>
#include <tapedeck/viewer/plan/delta_table.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

// By what the values are coloured, the unit of the axis of time, and how the plans are drawn.
struct CompareLook {
  ColourBy by = ColourBy::role;
  TimeUnit unit = TimeUnit::nodes;
  bool overlay = false;  // the right plan, with the left one over it as outlines; else side by side
  bool locked = true;    // a zoom or a move of one side is one of the other side too
  bool swapped = false;  // the second plan is on the left
  bool operator==(const CompareLook&) const = default;
};
// The commands of a comparison, by their ids: view.colour-by-*, view.axis-*, compare.overlay, compare.lock, compare.swap.
const std::vector<std::string>& compare_commands();
// The look after one of these commands. REQUIRES that `command` is one of them.
CompareLook look_after(CompareLook look, std::string_view command);

// The picture of the comparison. A value under the mouse, and a selected one, is outlined on both sides.
class ComparePicture : public Picture {
 public:
  explicit ComparePicture(Comparison comparison, CompareLook look = {});
  ComparePicture(const ComparedPlan& first, const ComparedPlan& second, CompareLook look = {})
      : ComparePicture(compare(first, second), look) {}
  void draw(float width, float height) override;
  const CompareLook& look() const { return look_; }
  void set_look(CompareLook look);
  const MatchedPlans& plans() const { return *plans_; }  // the left one is that on the left of the picture
  const std::shared_ptr<const Table>& table() const { return comparison_.tables[look_.swapped ? 1 : 0]; }

  // Selects a value of one side, and its match; kNone: nothing.
  void select(int side, ValueId v);
  ValueId selected(int side) const { return selections_[static_cast<std::size_t>(side)].value; }
  ValueId hovered(int side) const { return selections_[static_cast<std::size_t>(side)].hovered; }
  void hover(int side, ValueId v);
  void fit_all();
  // `chosen` is called when a person selects a value in the picture.
  void set_chosen(std::function<void()> chosen) { chosen_ = std::move(chosen); }
  const PlanView& view(int side) const { return views_[static_cast<std::size_t>(side)]; }
  // The place of a value on the canvas in the last frame, for tests.
  std::optional<ImVec2> place_of(int side, ValueId v) const;

 private:
  std::shared_ptr<const TimeAxis> axis_of(int side) const;
  const ComparedPlan& plan(int side) const { return plans_->side(side); }
  float draw_head(int side, float x0, float x1, float y) const;
  void draw_side(int side, float x0, float x1, float top, float height);
  void draw_overlay(float width, float top, float height);
  void draw_difference(const Plot& curve) const;
  Plot plot_of(int side, float x0, float y0, float x1, float y1, bool has_addresses) const;
  void take_mouse(int side);
  void move_other(int side);
  void tooltip(int side, const Plot& curve) const;

  Comparison comparison_;
  const MatchedPlans* plans_ = nullptr;  // of comparison_
  CompareLook look_;
  std::vector<PlanColours> colours_;  // of both sides; a group has the same colour in both
  std::array<MemoryPlot, 2> plots_;
  std::array<Plot, 2> memory_, curve_;  // of the last frame
  std::array<PlanView, 2> views_;
  std::array<Navigation, 2> navigations_;
  std::array<Selection, 2> selections_;
  PlanView home_;  // both plans whole
  Range live_;
  ByteUnit unit_;                         // of all bytes of the picture
  std::vector<std::int64_t> left_bytes_;  // of the left plan, along the nodes of the right one
  std::function<void()> chosen_;
};

}  // namespace tapedeck::viewer
