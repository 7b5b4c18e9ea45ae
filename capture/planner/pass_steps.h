// The way of a graph from the capture to the plan, step by step: the graph after every pass that prepare() runs, and at last
// the graph of the plan. `tapedeck plan` runs the same steps and shows their end alone.
//
//     captured    dead_code    cse       ...    insert_copies    plan
//     120 nodes   -8           -2        ...    +3               +14 clones
#pragma once

#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/sharing.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace tapedeck TAPEDECK_API {

// One step. The graph is valid during the call only.
struct PassStep {
  PassRecord record;  // the first step is "captured": nothing is won
  const Graph& graph;
};

// Calls `seen` with the captured graph as it is, and then with the graph after each step of prepare(). A pass that
// TAPEDECK_DISABLE_PASSES leaves out is no step. Every graph is verified. Throws InvalidGraphError, and Cancelled once the flag
// is up. Cost: prepare(), and some walks over the graph for each pass.
void watch_pass_steps(const Graph& captured, OptimizationLevel level, Sharing sharing, const std::atomic<bool>* cancel,
                      const std::function<void(const PassStep&)>& seen);

// The last step, from the graph that prepare() made to that of a plan: another order of nodes, and clones. Its time is that
// of planning.
PassRecord planned_step(const PassRecord& last, const Plan& plan);

// A sentence about a step: the documentation of the pass, or of a step that is no pass.
std::string step_doc(const std::string& name);

}  // namespace TAPEDECK_API
