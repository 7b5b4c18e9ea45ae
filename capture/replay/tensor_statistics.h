// A tensor at a glance: its statistics, and how its elements are distributed. The numbers depend
// on the elements and their order alone, not on strides or threads.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Bools count as 0 and 1. Sums are made in long double, in C order.
struct TensorStatistics {
  std::int64_t elements = 0;
  std::int64_t nan = 0, infinite = 0, zeros = 0;  // how many elements are NaN, an infinity, zero (of either sign)
  double min = 0, max = 0, mean = 0;              // of the finite elements; 0 if there are none
  double deviation = 0;  // the root of the mean square of the distances of the finite elements from their mean

  std::int64_t not_finite() const { return nan + infinite; }
};
TensorStatistics statistics(const Tensor& tensor);  // TypeError for a tensor without data. O(elements)

// The finite elements by size, in bins of equal width from the least of them to the greatest. A bin holds its lower edge, and
// the last bin its upper edge too. If all finite elements are equal there is one bin; if there are none, there is no bin.
struct Histogram {
  double min = 0, max = 0;
  std::vector<std::int64_t> counts;  // by bin

  double edge(std::size_t bin) const;  // the lower edge of the bin; of counts.size() the upper edge of the last one
};
Histogram histogram(const Tensor& tensor, int bins = 32);  // UsageError unless bins >= 1. O(elements)

// The elements as text; of many elements those at the corners: at most 64, but for tensors of four axes and more.
std::string corner_text(const Tensor& tensor);

}  // namespace TAPEDECK_API
