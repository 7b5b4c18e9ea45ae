// Looks for NaN and infinity in the results of a node (TAPEDECK_CHECK_NAN).
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <optional>

namespace tapedeck::replay {

struct NotFinite {
  std::int32_t output = 0;   // of the call
  std::int64_t element = 0;  // of that output, in C order
  double number = 0;
};

// The first element of a floating result of the call that is NaN, if `nan`, or an infinity, if `infinite`. REQUIRES: the call
// ran on the CPU. O(elements).
std::optional<NotFinite> find_not_finite(const KernelCall& call, bool nan, bool infinite);

// Throws ExecutionError if a floating result of the call, which node n has made on the CPU, is not finite. The message names
// the value, the element and the types of the operands. O(elements).
void require_finite(const Graph& graph, NodeId n, const KernelCall& call);

}  // namespace tapedeck::replay
