// Which nodes take too much time to be computed again for the sake of their bytes alone.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>

#include <vector>

namespace tapedeck {

// By node. An op that its traits call cheap or elementwise is not costly. Another op is costly if it counts more than ten
// operations for each byte that it moves (a product, a convolution), or, where its microseconds are stated (opaque), if it
// costs more than the average node of the forward part. The machine has no part in it.
std::vector<char> costly_nodes(const Facts& facts);

}  // namespace tapedeck
