// A chain of elementwise nodes as one node. The pass `fuse` (capture/passes/fuse.cpp) makes such nodes; no author calls the op.
#if !defined(TAPEDECK_ENGINE_OPS_FUSED_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_FUSED_H

#include <tapedeck/engine/ops/op_block.h>

namespace tapedeck TAPEDECK_API {

// The region holds elementwise nodes with one result each, all of one shape: the shape of the results of the node. Operands
// broadcast to this shape. A replay runs the region tile by tile (kernels/cpu/elementwise/tiles.h), so a value inside never
// takes memory; elsewhere the region is interpreted node by node. Both give the bits of the nodes one by one, since every value
// inside is rounded to its own dtype. The gradient is that of the nodes inside.
OP_CONTROL(fused, "fused",
           {
               .doc = "computes the elementwise nodes of its region in one pass over its operands",
               .traits = kElementwise | kAnyStrides | kCheap | kTiled,
               .inplace = any_result_over_any_operand(),
               .min_inputs = 1,
               .max_inputs = kMostFusedOperands,
               .max_outputs = kMostFusedNodes,
               .n_regions = 1,
               .infer = infer_fused,
               .vjp = vjp_fused,
               .run = run_fused,
           })

#ifndef TAPEDECK_DEFINE_OPS
inline constexpr std::int8_t kMostFusedNodes = 64, kMostFusedOperands = 64;

// Whether a region of `fused` can hold the node: pure, elementwise, without regions, with one result.
bool can_be_fused(const Node& node);
#endif

}  // namespace TAPEDECK_API

#endif
