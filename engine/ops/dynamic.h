// Parts of a step that a plan cannot hold, because their sizes are known only while they run.
#if !defined(TAPEDECK_ENGINE_OPS_DYNAMIC_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_DYNAMIC_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/dynamic.h>

namespace tapedeck TAPEDECK_API {

// A region that runs without a plan. Its operands and results have the types that the region states. Inside, the ops that
// count elements (nonzero, masked_select) count again in every run, and the types after them follow by inference; the types
// that the region states inside are those for masks that are all true. Attributes do not change, except those that `follows`
// names. A capture makes this op after gradients were recorded (capture/record/dynamic_region.h).
OP_CONTROL(dynamic, "dynamic",
           {
               .doc = "runs its region on the operands, unplanned: sizes inside are found while it runs",
               .traits = kOwnSegment | kSampleTypes,
               .max_inputs = -1,
               .min_outputs = 0,
               .max_outputs = -1,
               .n_regions = 1,
               .attrs = &attr_schema<DynamicAttrs>(),
               .infer = infer_dynamic,
               .no_gradient = "its gradient was recorded before it was made",
               .run = run_dynamic,
           })

}  // namespace TAPEDECK_API
#endif
