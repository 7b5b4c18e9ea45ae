// How one plan is coloured: every rectangle belongs to a layer, and the curve of live bytes is a stack of the same layers. A
// layer is a role, or a group of values (value_groups.h). The bytes of all layers at a node sum to the curve there, to the
// byte.
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/plan/value_groups.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// One layer: its name and its live bytes by node.
struct PlanLayer {
  std::string name;
  int key = 0;  // the role, or the number of the group
  const std::vector<std::int64_t>* curve = nullptr;
};

class PlanColours {
 public:
  // By role. O(1).
  explicit PlanColours(std::shared_ptr<const PlanModel> model);
  // By group. `groups`: of the graph that the plan was made for; null: by role. O(rectangles + nodes * layers).
  PlanColours(std::shared_ptr<const PlanModel> model, std::shared_ptr<const ValueGroups> groups);

  PlanColours(PlanColours&&) = default;  // the layers point to curves of this object
  PlanColours& operator=(PlanColours&&) = default;

  ColourBy by() const { return groups_ ? groups_->by() : ColourBy::role; }
  // The layers that occur in the plan, in the order in which they are stacked, from bottom to top.
  const std::vector<PlanLayer>& layers() const { return layers_; }
  Colour colour(const PlanLayer& layer) const { return colour_of_key(layer.key); }  // of the theme in use
  bool hatched(const PlanLayer& layer) const { return !groups_ && layer.key == static_cast<int>(RoleClass::recomputed); }
  // Of a rectangle of the model, by its index.
  Colour colour_of(std::size_t rect) const {
    return colour_of_key(groups_ ? group_of_[rect] : static_cast<int>(model_->rects()[rect].role));
  }
  // "stage1": the name of the layer that a rectangle belongs to.
  const std::string& name_of(std::size_t rect) const;

 private:
  Colour colour_of_key(int key) const;
  void stack_roles();
  void stack_groups();

  std::shared_ptr<const PlanModel> model_;
  std::shared_ptr<const ValueGroups> groups_;
  std::vector<std::uint8_t> group_of_;             // by rectangle
  std::vector<std::vector<std::int64_t>> curves_;  // by group
  std::vector<std::string> names_;                 // by key
  std::vector<PlanLayer> layers_;
};

}  // namespace tapedeck::viewer
