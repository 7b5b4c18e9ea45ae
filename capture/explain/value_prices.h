// What the other choice for one value of a plan would cost, in two ways:
//
//     all others fixed   the nodes of the plan in their order, with this one change: a kept value is made again before its last
//                        reader, a recomputed one is kept from its first run on. Bytes are laid out again, nothing is chosen
//                        again.
//     planned anew       make_plan() with the wish to keep or to recompute the value, which may change every other choice.
#pragma once

#include <tapedeck/capture/explain/value_log.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct ValuePrice {
  std::string obstacle;               // why there is no such choice; empty: there is, and the rest holds
  bool feasible = true;               // the budget of the plan holds
  std::int64_t live_peak_bytes = 0;   // most bytes alive at once, as Plan::lower_bound_bytes
  std::int64_t peak_bytes = 0;        // with the bytes that placement adds, as Plan::peak_bytes
  std::int64_t floor_bytes = 0;       // planned anew alone
  double cost_us = 0;                 // of all nodes, as Plan::cost_us
  std::int32_t recomputed_nodes = 0;  // clones
  NodeId before = kNone;              // made again before this node of the plan; kNone: kept
  std::vector<NodeId> nodes;          // of the plan that run once more there
  Wish wish;                          // planned anew alone
};

// The other choice with all others fixed. Makers whose results nobody reads any more are left out: a kept value with one reader
// is moved rather than made twice. `log` is the plan's, `entry` one of its entries, `options` those that the plan was made
// with; their strategy, order and wishes do not count, and neither do marks of the program. Throws the errors of make_plan().
// O(nodes + values) and one layout.
ValuePrice price_alone(const Plan& plan, const std::vector<ValueEntry>& log, const ValueEntry& entry,
                       const PlanOptions& options);

// The plan with the wish for the other choice beside all others. The budget is that of `plan`, in bytes. Takes as long as
// make_plan().
ValuePrice price_anew(const Graph& captured, const Plan& plan, const ValueEntry& entry, const PlanOptions& options);

// The two halves of price_anew, for a caller who has the plan from a search of its own: the wish for the other choice, or the
// obstacle to it; and the numbers of the plan that honours the wish.
ValuePrice other_wish(const ValueEntry& entry);
void take_numbers(const Plan& anew, ValuePrice* price);

// Everything that is known of one value; both prices where they are given.
std::string value_text(const Plan& plan, const ValueEntry& entry, const ValuePrice* alone, const ValuePrice* anew);

}  // namespace TAPEDECK_API
