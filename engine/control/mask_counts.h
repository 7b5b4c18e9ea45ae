// Counts that only a run knows: how many elements of a mask hold. Eager code reads them on the host; inside an open capture the
// read is allowed and noted here, so that capture can keep what depends on it out of the plan
// (capture/record/dynamic_region.h).
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Nodes of this op count the elements that hold in their last operand: the attribute `count` says how many there were.
bool counts_elements(const Op& op);
std::int64_t count_of(const Graph& graph, const Node& node);
void set_count(void* attributes, std::int64_t count);

// Whether a count may be read on the host here: the tape of this thread is a capture's, of running code.
bool capturing_counts();
// How many elements of `mask` hold, read without leaving a trace on the tape.
std::int64_t read_count(const Tensor& mask);
// The counting node recorded last on this thread's capture has such a count.
void note_dynamic_count();
// The nodes noted for the tape of this serial, ascending; they are forgotten here.
std::vector<NodeId> take_dynamic_counts(std::uint64_t serial);

}  // namespace TAPEDECK_API
