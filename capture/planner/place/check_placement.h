// Whether a placement is right, found in another way than any that makes one: by a sweep over time.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// What is wrong with a placement of these buffers, in a sentence; empty: nothing. Looks at sizes, alignments, fixed offsets,
// lives and holes (buffers by number), arenas no larger than chunk_bytes (-1: one of any size) and the end, which must be as
// stated. O(n log n).
std::string find_fault(const std::vector<Tenant>& buffers, const Offsets& placed, std::int64_t chunk_bytes = -1);

}  // namespace TAPEDECK_API
