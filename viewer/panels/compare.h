// Two plans side by side: two memory plans and two curves, drawn to the same scales.
#pragma once

#include <tapedeck/viewer/panels/memory.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

// One of the two plans.
struct ComparedPlan {
  std::string title;  // "digits.tape · train_step"
  std::shared_ptr<const PlanModel> model;
  std::shared_ptr<const Graph> captured;  // that the plan was made for
};

// By what the values are coloured, and the unit of the axis of time.
struct CompareLook {
  ColourBy by = ColourBy::role;
  TimeUnit unit = TimeUnit::nodes;
  bool operator==(const CompareLook&) const = default;
};
// The commands of a comparison, by their ids: view.colour-by-*, view.axis-*.
const std::vector<std::string>& compare_commands();
// The look after one of these commands. REQUIRES that `command` is one of them.
CompareLook look_after(CompareLook look, std::string_view command);

// The picture of the comparison.
class ComparePicture : public Picture {
 public:
  ComparePicture(ComparedPlan left, ComparedPlan right, CompareLook look = {});
  void draw(float width, float height) override;
  const CompareLook& look() const { return look_; }
  void set_look(CompareLook look);

 private:
  // Both plans in microseconds, or both in nodes: a plan whose nodes take no time has no other axis.
  std::shared_ptr<const TimeAxis> axis_of(int side) const;
  void draw_side(int side, float x0, float x1, float height);
  void hover(int side, const Plot& memory, const Plot& curve) const;

  std::array<ComparedPlan, 2> sides_;
  CompareLook look_;
  std::vector<PlanColours> colours_;  // of both sides; a group has the same colour in both
  std::array<MemoryPlot, 2> plots_;
  Range time_, address_, live_;
  ByteUnit unit_;  // of all bytes of the picture
};

}  // namespace tapedeck::viewer
