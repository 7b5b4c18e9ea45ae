// From recordings of one step at different sizes to one graph and the rules by which it follows its dimensions.
//
// The recordings must be the same program: same nodes, operands, regions, results. Whatever number differs between them is
// solved as a function of the sizes, in this order: a multiple of one dimension or of a product of two; affine in one; a sum
// over two dimensions; real numbers as c * n or c / n. A function is taken if it explains every recording, with one more
// recording than it has coefficients (so that a coincidence shows), and if no other function of its kind does. At the end the
// graph is re-typed at every recorded size and must be what was recorded there.
//
// What this cannot see: code that turns another way only at sizes never recorded (`min(n, 16)`). Checked mode compares replays.
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
  bool more = false;  // not found, and recordings at other sizes could change that
  std::string why;    // why not
};

// Fills in table->entries for the graph of samples.front(). REQUIRES: table->dims and ->axes are set; at least two samples, of
// different sizes. Deterministic. O(nodes * samples).
DimFindings find_rules(DimTable* table, const std::vector<DimSample>& samples);

}  // namespace TAPEDECK_API
