// How many bytes one run of a loop's body or of a branch takes, as a choice of the planner.
//
// A region has a plan that keeps everything, and perhaps plans in fewer bytes (region_plans.h): they compute values of the
// region again, and loops inside of the region keep less for their backward. The frame of a region lies in the workspace of its
// node. So a leaner region is the same program with less workspace and a higher cost:
//
//     %y = scan(%x, %w)    body kept whole: 96 KiB, 20 us a pass    a leaner body: 64 KiB, 23 us a pass
//
// Each choice enters the planning as an order of its own, as other ways of loops do (loop_intervals.h).
#pragma once

namespace tapedeck {

struct Planning;

// The stage: for the recorded order, and for the order that keeps the fewest bytes alive, adds orders with leaner regions in
// those nodes whose workspace is a large part of the bytes alive. REQUIRES: add_loop_intervals.
void add_lean_regions(Planning* planning);

}  // namespace tapedeck
