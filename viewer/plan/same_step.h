// The same node in two plans of one step: the node that makes the value of that name.
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

// The nodes of a graph by the names of their first results.
class NodesByValue {
 public:
  explicit NodesByValue(const Graph& graph);
  NodeId first_maker(Name name) const;  // kNone for a name that no node makes

 private:
  using Named = std::pair<const void*, NodeId>;
  std::vector<Named> nodes_;  // sorted: a third of the memory of a map
};

// The live bytes of `other` in its own order of nodes, drawn out or drawn together to as many nodes as `shown` has.
std::vector<std::int64_t> live_bytes_along(const PlanModel& other, const PlanModel& shown);

}  // namespace tapedeck::viewer
