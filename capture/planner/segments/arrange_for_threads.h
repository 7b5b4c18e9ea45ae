// Placing bytes for several threads.
//
// Placed for the order of nodes, bytes that one branch frees are used by the next, which then waits for it although no value
// leads from the one to the other. Placed apart, segments that run at the same time when no bytes are used again still do so:
// that simulated run stays possible, and only bytes are lost.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/layout/layout.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>
#include <tapedeck/capture/planner/segments/cut_segments.h>

#include <optional>

namespace tapedeck {

struct Arrangement {
  Layout layout;
  std::vector<Edge> reuse_edges;
  Cut cut;
};

// Bytes and segments for options.threads: placed tightly; or apart if that shortens the simulated run by a twentieth, keeps
// within the budget (bytes) and makes the peak no more than options.parallel_peak times as high. `tight`: what lay_out gives,
// if that is known.
Arrangement arrange(const Facts& facts, const ClonedGraph& cloned, const std::vector<double>& node_cost,
                    const PlanOptions& options, std::optional<Layout> tight = std::nullopt);

}  // namespace tapedeck
