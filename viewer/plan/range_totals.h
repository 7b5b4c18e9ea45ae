// The totals of a range of nodes: how long they take, how many bytes are alive at both ends, the most and the least between
// them, and what is born and dies on the way.
//
//     bytes at the last node - bytes at the first node = born - died          for every role, and in all
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/plan/selection.h>

#include <array>
#include <cstdint>

namespace tapedeck::viewer {

struct RangeBytes {
  std::int64_t at_first = 0, at_last = 0;  // alive while this node runs
  std::int64_t born = 0, died = 0;         // after the first node, up to the last
  std::int64_t born_count = 0, died_count = 0;
};

struct RangeTotals {
  NodeRange range;
  NodeId most_at = kNone, least_at = kNone;  // the first such nodes
  std::int64_t most = 0, least = 0;
  double us = 0, step_us = 0;  // what the nodes of the range take by the cost model, and what all nodes take
  RangeBytes all;
  std::array<RangeBytes, kRoleClassCount> roles;

  const RangeBytes& of(RoleClass role) const { return roles[static_cast<std::size_t>(role)]; }
};

// REQUIRES: 0 <= range.first <= range.last < model.nodes(). A result that takes over the bytes of its operand is born when the
// operand dies.
RangeTotals range_totals(const PlanModel& model, const NodeRange& range);

}  // namespace tapedeck::viewer
