// Orders and parts in place (analysis/parts.h) that suit each other. Either alone misses what both have:
//
//     %a = cumsum(%x)                  as recorded %a is alive while the parts are written, so that %c had better copy them;
//     without parts %b = tanh(%x)                    no order of these five is better than another. With %b in %c, and %a
//     summed up first, the peak is %c = concat(%b, %x) {axis=0}     that of %c. %s, %t = sum(%a), sum(%c)
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/order/find_order.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

struct JoinedOrder {
  std::string name = "recorded";  // Plan::order
  std::vector<NodeId> nodes;      // by position; empty: as they stand
  PartChoice parts;               // by value of the graph as it stands
  std::int64_t live_peak = 0;     // arena bytes
};

// `known` or better: in turn an order for the parts and parts for the order, as long as that wins. Never above a list schedule
// with the parts that share_parts() chooses in it; of up to 18 nodes that may be joined in up to 4,096 ways the least there is.
// Deterministic. Takes several searches for an order and some ten choices of parts. REQUIRES: facts are as collect_facts()
// leaves them.
JoinedOrder find_joined_order(const Facts& plain, const JoinedOrder& known, const OrderOptions& options = {});

// The choice for a graph with its nodes in another order: that of `from` for `to`, which is reorder(from, nodes); and that of
// `to` for `from`.
PartChoice move_choice(const PartChoice& choice, const Graph& from, const std::vector<NodeId>& nodes, const Graph& to);
PartChoice move_choice_back(const PartChoice& choice, const Graph& from, const std::vector<NodeId>& nodes, const Graph& to);

}  // namespace tapedeck
