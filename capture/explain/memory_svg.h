// A plan as a picture: addresses up, schedule to the right, external bytes at the bottom and the arena on top of them, coloured
// by role as in the viewer (viewer/README.md). Lines mark the peak, the lower bound, the budget and the joints of the arena's
// chunks. A box smaller than a pixel is drawn together with its neighbours of the same role, so that the file stays small
// for any number of values. The largest boxes show their names; every other box that is drawn shows its name under the pointer.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

struct SvgOptions {
  int width = 1600, height = 900;  // 400 to 16384 each
  std::string title = {};          // empty: the graph's name
};

// An SVG document. REQUIRES: check_plan(plan) finds nothing. Throws UsageError for a size out of range. Deterministic. Thread
// safe. O(values log values); at most a rectangle for each pixel column and row.
std::string memory_svg(const Plan& plan, const SvgOptions& options = {});

}  // namespace TAPEDECK_API
