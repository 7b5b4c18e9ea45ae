// The regions of a node: the body of a loop, the branches of a `cond`, the nodes that a fused node joins. Each that runs by
// plan has a plan of its own (Plan::region_plans), which is drawn as the plan of a step is.
//
//     step        %y = scan(%x, %w)                  100 passes, workspace 0.25 MiB
//     body          %h = matmul(%c, %w)              one pass: 3 nodes, whose arena lies in that workspace
//                   %t = tanh(%h)
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/words/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// One region, in words and numbers.
struct RegionFacts {
  std::string title;        // "body", "condition", "if true", "gradient of a pass"
  bool is_planned = false;  // else its values have no bytes in the plan
  std::int32_t nodes = 0, recomputed = 0;
  std::int64_t arena_bytes = 0;  // of its plan; it lies in the workspace of the node
  double us = 0;                 // of one run, by the costs of the plan around it
};

struct NodeRegions {
  std::vector<RegionFacts> regions;  // empty: the node has none
  std::string runs;                  // "9 passes"; "one of both branches"
  std::string keeps;                 // what backward keeps of the passes: one sentence; may be empty
  std::int64_t workspace = 0;        // the arena of a region, its results, and what the gradient of a loop keeps
};

// The facts about the regions of a node. O(nodes of the regions).
NodeRegions regions_of(const PlanModel& model, NodeId n);
std::string region_title(const Node& node, int region);
// "100 passes · here 3 nodes, 100.4 us a run · arena 0.062 MiB, workspace 0.125 MiB". REQUIRES: the facts have this region.
std::string region_text(const NodeRegions& facts, int region, const ByteUnit& unit);
const Plan* plan_of_region(const Plan& plan, const Node& node, int region);  // null if the region does not run by plan

// The plan of a region as a model, by the costs of the plan around it. A region that does not run by plan has a model whose
// values have no bytes. REQUIRES: the node has this region. Any thread may call it.
std::shared_ptr<const PlanModel> region_model(const PlanModel& around, NodeId n, int region);

// A way from the step into a region of a region: the first results of nodes, which have the same names in every plan of a step.
struct RegionStep {
  std::string value;
  int region = 0;

  bool operator==(const RegionStep&) const = default;
};
using RegionPath = std::vector<RegionStep>;

// The region at the end of a way, or the step itself.
struct RegionPlace {
  std::shared_ptr<const PlanModel> model;
  std::shared_ptr<const PlanModel> around;  // that has the node of the region; null: `model` is the step
  NodeId node = kNone;
  RegionPath path;
  std::vector<std::string> names;  // by step of the path: "scan %y, body"
};

RegionStep step_into(const PlanModel& model, NodeId n, int region);
// Goes as far as this plan has the nodes and regions of the path. O(nodes) for each step.
RegionPlace place_inside(std::shared_ptr<const PlanModel> step, const RegionPath& path);
// The region that a node opens with: the body of a loop, the branch of true, the gradient of a pass.
int first_shown_region(const Node& node);

}  // namespace tapedeck::viewer
