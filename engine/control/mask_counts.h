// Counts that are known only while a program runs: how many elements of a mask are true. Eager code reads such a count on the
// host. A capture of running code allows the read too, and this file notes the node, so that the capture can keep nodes that
// depend on the count out of the plan (capture/record/dynamic_region.h).
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Whether nodes of this op count the true elements of their last operand. The attribute `count` of such a node holds the
// count.
bool counts_elements(const Op& op);
std::int64_t count_of(const Graph& graph, const Node& node);
void set_count(void* attributes, std::int64_t count);

// Whether this thread records a capture of running code, in which a count may be read on the host.
bool capturing_counts();
// The number of true elements of `mask`. Nothing is recorded on the tape.
std::int64_t read_count(const Tensor& mask);
// Notes the counting node that was recorded last on this thread's capture.
void note_dynamic_count();
// Returns the nodes noted for the tape with this serial number, in ascending order, and forgets them.
std::vector<NodeId> take_dynamic_counts(std::uint64_t serial);

}  // namespace TAPEDECK_API
