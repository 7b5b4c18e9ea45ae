// Which nodes take too much time to be computed again for the sake of their bytes alone.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>

#include <vector>

namespace tapedeck {

// By node. An op that its traits call cheap or elementwise is not costly. Another op is costly if it counts more than ten
// operations for each byte that it moves (a product, a convolution), or, where its microseconds are stated (opaque), if it
// costs more than the average node of the forward part. The machine has no part in it.
std::vector<char> costly_nodes(const Facts& facts);

// Takes the last node off every chain of marked nodes, one reading the other, that is longer than eight nodes and than the
// square root of the number of marked nodes. Without this a long chain (the sums along a residual net) would be computed again
// at once, and be alive at once.
void cut_long_chains(const Facts& facts, std::vector<char>* marked);

}  // namespace tapedeck
