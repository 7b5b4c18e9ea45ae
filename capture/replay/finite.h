// Looks for NaN and infinity in the results of a node (TAPEDECK_CHECK_NAN).
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/kernel.h>

namespace tapedeck::replay {

// Throws ExecutionError if a floating result of the call, which node n has made on the CPU, is not finite. The message names
// the value, the element and the types of the operands. O(elements).
void require_finite(const Graph& graph, NodeId n, const KernelCall& call);

}  // namespace tapedeck::replay
