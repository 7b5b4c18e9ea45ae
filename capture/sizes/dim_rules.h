// From recordings of one step at different sizes to one graph, and to the rules by which the graph follows its dimensions.
//
// The recordings must be the same program: same nodes, operands, regions and results. Each number that differs between them is
// solved as a function of the sizes, in this order: a multiple of one dimension or of a product of two; affine in one
// dimension; a sum over two dimensions; for real numbers c * n, c / n, or n / (n - 1) where n is the number of elements over
// which a batch norm or the like took its statistics. A function is taken if it explains every recording, if there is one more
// recording than the function has coefficients (so that a coincidence shows), and if no other function of its kind explains
// them. At the end the graph is typed again at every recorded size and must equal the recording.
//
// Recordings cannot show a turn that the code takes only at sizes that were never recorded (`min(n, 16)`). Checked mode
// compares replays and finds it.
#pragma once

#include <tapedeck/capture/sizes/dim_table.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct DimSample {
  const Graph* graph = nullptr;
  std::vector<std::int64_t> sizes;  // by dim of the table
};

struct DimFindings {
  bool found = false;
  bool more = false;  // no rule was found, and recordings at other sizes could change that
  std::string why;    // why no rule was found
};

// Fills in table->entries for the graph of samples.front(). REQUIRES: table->dims and ->axes are set; at least two samples, of
// different sizes. Deterministic. O(nodes * samples).
DimFindings find_rules(DimTable* table, const std::vector<DimSample>& samples);

}  // namespace TAPEDECK_API
