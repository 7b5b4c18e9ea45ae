// How an imported graph ends.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck TAPEDECK_API {

// A value that a graph returns has bytes of its own, and they count from the start of a replay to its end. Published peaks
// count every value from the node that makes it.
enum class ImportedResults : std::uint8_t {
  held,      // a last node %end of no bytes and no time reads all results, and the graph returns %end: results count from their
             // nodes to the end, and a plan may compute them again
  returned,  // the graph returns the results
};

}  // namespace TAPEDECK_API
