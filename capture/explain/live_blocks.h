// Which bytes of the arena were held when, in a run that has taken place: the planned lifetimes with the clock's times in place
// of node numbers. The counter of `--trace` and the events of `--memory-trace` are made from this.
#pragma once

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Bytes of the arena held from the start of the node that writes them to the end of the last node that touched them, windows
// and in-place heirs counted in.
struct LiveBlock {
  ValueId value = kNone;  // the first value in these bytes; kNone: the workspace of `first`
  NodeId first = kNone;   // kNone: written before this run began
  NodeId last = kNone;    // kNone: held to the end of the run
  std::int64_t offset = 0, bytes = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

struct LiveEvent {
  std::int64_t at_ns = 0;
  std::int32_t block = 0;
  bool begins = true;  // else it ends
};

struct LiveBlocks {
  std::vector<LiveBlock> blocks;  // by `first`, values before workspace
  std::vector<LiveEvent>
      events;  // in order of time; of equal times in the order of the plan, which every run follows where it must
};

// Nodes that did not run in `timeline` hold nothing. Following the events, no two live blocks ever overlap, so that their sum
// never passes plan.arena_bytes; where one thread took the nodes in the plan's order its highest value is lower_bound_bytes -
// external_bytes. O(values + slices log slices).
LiveBlocks live_blocks(const Plan& plan, const Timeline& timeline);

// The most bytes held at once, external ones included.
std::int64_t live_peak(const Plan& plan, const LiveBlocks& live);

}  // namespace TAPEDECK_API
