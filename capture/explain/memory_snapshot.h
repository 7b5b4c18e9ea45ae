// Every allocation of one run, for tools that show memory over time. Allocations are the plan's: one segment is the arena, each
// input, state value, constant and output buffer is a segment of its own, and addresses are made up from buffer and offset, so
// that two traces of a plan differ in times alone. Buffers that are always held are allocated when the trace begins and still
// there when it ends.
//
// The pickle is PyTorch's memory snapshot, which its viewer (pytorch.org/memory_viz) and torch.cuda._memory_viz read:
// `segments` with their `blocks` as they are after the run, and `device_traces` with segment_alloc, alloc, free_requested,
// free_completed and a closing snapshot. Frames name the op with its value, at the user's call site, then the module. The
// legend is the events' `category`: parameter, moment, input, ..., and for the arena activation (saved for backward),
// recomputed, gradient, workspace, temporary. One event has the category "unknown", without which the viewer fails.
#pragma once

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// REQUIRES: `run` comes from a replay of `plan`. O(values + slices log slices).
std::string memory_snapshot_pickle(const Plan& plan, const Timeline& run);

// The same events as JSON, schema "tapedeck.memory_trace/1": `segments`, and `events` in order of time with action alloc or
// free.
std::string memory_trace_json(const Plan& plan, const Timeline& run);

}  // namespace TAPEDECK_API
