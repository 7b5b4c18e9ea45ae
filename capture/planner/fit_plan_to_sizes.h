// A plan for one size used for smaller ones: same order, same offsets, same arena, no planning.
//
//   make_plan(graph at the largest sizes) --> Refit --> the plan at any sizes below
//
// Every value keeps its offset and has at most its bytes, so what did not overlap still does not; windows are computed again.
// The caller (Executor) has check_plan() judge the result like any other plan.
//
// Passes ran at the largest sizes alone. They may have merged what is equal there and nowhere else (a slice [0:n] and a slice
// [0:64] at n = 64). So a planned graph is taken for other sizes only if it is the captured graph in symbols too: every planned
// node is the node it is named after, reads the same operands up to nodes equal at every size (same op, operands, attributes
// and rules), and returns and stores the same.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/sizes/dim_table.h>
#include <tapedeck/kernels/export.h>

#include <optional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The plan with every placement fitted to `graph`: the plan's own graph at other types. Empty if some value, workspace or
// buffer would be larger than the plan has bytes for, or a window cannot be taken; then `why` says which. figures: peak,
// external and lower bound are those of the new types, arena bytes stay.
std::optional<Plan> fit_plan(const Plan& plan, Graph graph, std::string* why);

class Refit {
 public:
  // `captured` is the graph and `table` its named dimensions, both as they were recorded. `largest` is the same graph with the
  // sizes that `plan` was made for. The caller keeps `plan` alive as long as this object; it reads the others only now.
  Refit(const Graph& captured, const DimTable& table, const Graph& largest, const Plan& plan);

  // Empty if the planned graph serves every size, else what stands in the way.
  const std::string& obstacle() const { return obstacle_; }
  // The planned graph with the types and attributes of `at`: captured at other sizes. REQUIRES: no obstacle.
  Graph planned_graph(const Graph& at) const;

 private:
  const Plan& plan_;
  std::string obstacle_;
  std::vector<NodeId> source_;  // by planned node: the captured node it is; kNone for a copy that planning put in
};

}  // namespace TAPEDECK_API
