// Checks a placement. The method, a sweep over time, differs from all methods that make placements.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Returns one sentence about the first fault of a placement, or an empty text if there is none. The check covers sizes,
// alignments, fixed offsets, overlaps of buffers that need their bytes at the same step, the size of every arena (at most
// chunk_bytes, -1: any size), and the stated end. Messages name buffers by number. O(n log n).
std::string find_fault(const std::vector<Tenant>& buffers, const Offsets& placed, std::int64_t chunk_bytes = -1);

}  // namespace TAPEDECK_API
