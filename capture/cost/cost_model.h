// The source of the planner's microseconds. The choice of values to recompute, the segments, and the ratios that a plan states
// all use the same numbers.
//
//   nothing        the built-in estimates of a nominal core (engine/ir/op.h): plans are the same everywhere
//   calibration    rates of this machine
//   profile        what every node took when this graph was replayed; nodes that were not measured are estimated, times the
//   median ratio of
//                  measured to estimated, so that units agree
//
// Plans are functions of graph, options and these numbers: the same model gives the same plan.
#pragma once

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct CostModel {
  std::optional<Calibration> calibration;
  std::optional<Profile> profile;
};

struct NodeCosts {
  std::vector<double> us;           // by node, finite and >= 0
  std::string source = "estimate";  // estimate, calibrated, profile: as Plan::costs
  std::int32_t measured = 0;        // nodes that the profile knows
  std::int32_t strangers = 0;       // names in the profile that no node has, or that belong to another op
  double scale = 1;                 // of the estimates of nodes that were not measured
};

// `model` may be null. Impossible times in a profile are treated as not measured; nothing is thrown for them.
NodeCosts cost_nodes(const Graph& graph, const CostModel* model);

}  // namespace TAPEDECK_API
