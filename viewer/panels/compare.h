// Two plans side by side: two memory plans and two curves, drawn to the same scales.
#pragma once

#include <tapedeck/viewer/panels/memory.h>

#include <array>
#include <memory>
#include <string>

namespace tapedeck::viewer {

// One of the two plans.
struct ComparedPlan {
  std::string title;  // "digits.tape · train_step"
  std::shared_ptr<const PlanModel> model;
};

// The picture of the comparison.
class ComparePicture : public Picture {
 public:
  ComparePicture(ComparedPlan left, ComparedPlan right);
  void draw(float width, float height) override;

 private:
  void draw_side(int side, float x0, float x1, float height);

  std::array<ComparedPlan, 2> sides_;
  std::array<PlanColours, 2> colours_;
  std::array<MemoryPlot, 2> plots_;
  Range time_, address_, live_;
};

}  // namespace tapedeck::viewer
