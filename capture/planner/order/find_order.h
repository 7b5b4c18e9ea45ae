// The order of a graph's nodes that keeps few bytes alive.
//
// Recorded programs keep more than they must: a weight's gradient waits for the optimizer at the end of the step although it
// could be used up at once. Several list schedules are tried (the tape's, breadth first, depth first, Inductor's least peak
// memory first and variants), then sets of nodes are searched (set_search.h: exact where the graph is small or falls apart),
// then single nodes are moved (local_search.h) and stretches around the peak are searched (stretch_search.h), with more work as
// long as that wins. Nothing of this is done if the tape's order already meets a bound that all orders have.
//
// Answers are never above the best of the list schedules; where several are as good, the tape's order is taken, then the
// earlier in the list. Deterministic. Up to 18 nodes (kExactItems) the answer is the least there is. Time: see `work`; 5,000
// nodes take at most half a second or so, those of most programs a tenth of that.
#pragma once

#include <tapedeck/capture/planner/order/order_problem.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

inline constexpr std::int32_t kExactItems = 18;  // windows and constants not counted

struct OrderOptions {
  bool split_phases = false;  // stretches of one phase stay where they are
  std::int64_t work =
      -1;  // look-ups of the search, 10 to 20 ns each; -1: by the size of the graph, more while it wins, most_work at most
  std::int64_t most_work = 30'000'000;
  std::int64_t below = std::numeric_limits<std::int64_t>::max();  // nothing is searched where no order can have a lower peak
  const std::atomic<bool>* cancel = nullptr;                      // the best so far is the answer
};

struct NodeOrder {
  std::string name = "recorded";  // how it was found (Plan::order)
  std::vector<NodeId> nodes;      // by position; empty: as recorded
  std::int64_t live_peak = 0;     // arena bytes
  bool optimal = false;           // no order has a lower peak
};

// Of a graph, or of one with clones (`source` as in ClonedGraph). Parts that the facts have in place stay there (join_orders.h
// chooses them).
NodeOrder find_order(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source,
                     const OrderOptions& options = {});

// What the list schedules alone give, the recorded order first: to compare with.
std::vector<NodeOrder> find_list_orders(const Facts& facts, const Graph& graph, const std::vector<NodeId>& source,
                                        bool split_phases = false, const std::atomic<bool>* cancel = nullptr);

// The same graph with its nodes in another order; names, notes and results stay.
Graph reorder(const Graph& graph, const std::vector<NodeId>& nodes);
// Clones wait for what stands before them now, and constants keep their numbers.
ClonedGraph reorder(const ClonedGraph& cloned, const std::vector<NodeId>& nodes);

// 0, 1, 2, ...: the sources of a graph without clones.
std::vector<NodeId> own_sources(const Graph& graph);

}  // namespace TAPEDECK_API
