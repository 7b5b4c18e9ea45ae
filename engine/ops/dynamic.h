// What does not fit into a plan because only a run knows how large it is.
#if !defined(TAPEDECK_ENGINE_OPS_DYNAMIC_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_DYNAMIC_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/dynamic.h>

namespace tapedeck TAPEDECK_API {

// Operands and results have the types that the region states. Inside, the ops that count (nonzero, masked_select) count again
// in every run, and types follow by inference; those that the region states are a sample, with every element of a mask holding.
// Attributes are taken as they are, but for those that `follows` names. Made by capture (capture/record/dynamic_region.h),
// after gradients were recorded.
OP_CONTROL(dynamic, "dynamic",
           {
               .doc = "runs its region on the operands, unplanned: sizes inside are found while it runs",
               .max_inputs = -1,
               .min_outputs = 0,
               .max_outputs = -1,
               .n_regions = 1,
               .attrs = &attr_schema<DynamicAttrs>(),
               .infer = infer_dynamic,
               .no_gradient = "its gradient was recorded before it was made",
               .run = run_dynamic,
           })

#ifndef TAPEDECK_DEFINE_OPS
// The most bytes that dynamic regions of this process held at once, beside every plan, since the last reset. Thread safe.
std::int64_t dynamic_peak_bytes();
void reset_dynamic_peak();
#endif

}  // namespace TAPEDECK_API
#endif
