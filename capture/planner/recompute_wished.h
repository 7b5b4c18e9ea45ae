// The values that the user wants computed again, written into the prepared graph before any strategy chooses. So every
// candidate honours the wishes, whatever its strategy and its order, and strategies may go on from there.
//
//     wish: recompute `h`
//     %h = exp(%x)                                  %h = exp(%x)
//     %t = tanh(%h)                                 %t = tanh(%h)              the last reader of this copy
//     %d = mul(%t, %h) [phase=backward]             %3 = exp(%x) [clone, of=%h, after=[%t, %h]]
//                                                   %d = mul(%t, %3) [phase=backward]
//
// A value is computed again just before its first reader in a phase after forward. In a graph without backward it is
// computed again across every gap between its readers of more than two stages. A value without a reader before that is not
// computed twice: its node moves there. A node that is computed again reads what the wish leaves it: operands that are wished
// for too are made again, and others are kept for it. If a strategy wants their bytes, it may give them up.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/facts/facts.h>

#include <string>
#include <vector>

namespace tapedeck {

struct Recomputed {
  Graph graph;
  std::vector<Decision> decisions;     // one for each node that is computed again
  double cost_us = 0;                  // of the clones
  std::vector<std::string> obstacles;  // by value: why a wish to compute it again cannot be met; empty: it is met
};

// The same for a prepared graph.
Recomputed wished_clones(const Graph& prepared, const PlanOptions& options);

bool wishes_to_recompute(const std::vector<Wish>& wishes);

// `facts`: of the prepared graph, without parts in place, with wishes noted (honour_wishes.h). O(nodes log nodes) for each
// clone of a value, and the clones are bounded.
Recomputed recompute_wished(const Facts& facts, const std::vector<Wish>& wishes);

}  // namespace tapedeck
