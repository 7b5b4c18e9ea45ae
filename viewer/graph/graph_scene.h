// All that the picture of the graph draws for one plan: the tree of its modules, the open modules, and the layout. It is made
// in the background, and immutable.
#pragma once

#include <tapedeck/viewer/graph/graph_layout.h>
#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/plan/regions.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// The paths of the open modules; none: as open_at_first() opens them. A path names the same module in every plan of a step.
using OpenModules = std::optional<std::set<std::string>>;

struct GraphScene {
  std::shared_ptr<const PlanModel> step;   // the plan that is shown
  RegionPlace place;                       // the region of it that is drawn, or the step itself
  std::shared_ptr<const PlanModel> model;  // of that place
  NodeRegions facts;                       // about the node of the region
  std::shared_ptr<const ModuleTree> tree;
  std::vector<char> open;  // by module
  GraphLayout layout;
  std::vector<std::int32_t> rect_of_node;  // by node: the first of the model's rectangles that its results have; kNone: none
  double longest_us = 0;                   // of the closed modules that are shown, in one lane

  std::set<std::string> open_paths() const;
  ModuleId find_module(const std::string& path) const;  // kNone if there is none; O(modules)
  // "%relu.3", "stage1.0": of a box, for people.
  std::string name_of(BoxId box) const;
};

// `before` may be null; of the same plan, region and times, its tree is taken. `us` by node of the step; empty: by the costs of
// the plan. The scene has as much of `inside` as the plan has.
std::shared_ptr<const GraphScene> make_graph_scene(std::shared_ptr<const PlanModel> step, const RegionPath& inside,
                                                   const GraphScene* before, const std::vector<double>& us,
                                                   const OpenModules& open);

// The boxes as CSV, a line for each.
std::string graph_boxes_csv(const GraphScene& scene);

}  // namespace tapedeck::viewer
