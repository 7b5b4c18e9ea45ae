// The knapsack of the bound of cost: items that together have at least so many bytes, and cost as little as possible.
#pragma once

#include <cstdint>
#include <vector>

namespace tapedeck {

struct CoverItem {
  double cost = 0;
  std::int64_t bytes = 0;  // above zero
};

struct Cover {
  double cost = 0;
  double per_byte = 0;  // of the item that was taken last
};

// The least cost where a part of one item may be taken. Sorts the items. REQUIRES: all items together have `bytes` bytes.
Cover fractional_cover(std::vector<CoverItem>* items, std::int64_t bytes);

// At most the least cost where only whole items may be taken, and equal to it unless the search ends after `most_steps`.
// REQUIRES: as above, and the items are sorted by fractional_cover().
double whole_cover(const std::vector<CoverItem>& items, std::int64_t bytes, int most_steps);

}  // namespace tapedeck
