// The events of replays, as Chrome trace events: a JSON file that ui.perfetto.dev and chrome://tracing open.
//
// One track per thread: a slice for every segment, the slices of its nodes inside (Perfetto wants perfect nesting). Flow arrows
// lead from a recomputed node to its readers. The counter "live bytes" counts like the peak of the plan: the bytes that are
// always held, and the bytes of the arena that are in use. The track "steps" has one slice per run; runs stand one after the
// other, without the time between them.
//
// Format: "Trace Event Format" (Google, Chromium project): events X (slice), s and f (flow), C (counter), M (names).
#pragma once

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <string>

namespace tapedeck TAPEDECK_API {

// REQUIRES: `runs` come from replays of `plan`. Valid JSON whatever bytes names hold. Times are microseconds, exact to the
// nanosecond even for readers that multiply by 1000 and cut. O(nodes + edges) for each run.
std::string chrome_trace(const Plan& plan, std::span<const Timeline> runs);

}  // namespace TAPEDECK_API
