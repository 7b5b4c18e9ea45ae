// Dispatch of ops with regions: infer, run the regions, record one node.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Applies an op of control flow. Results have bytes of their own. On abstract operands, and in abstract mode, results are
// abstract and nothing runs. Throws TypeError "[op] ... (file:line)" before anything is recorded.
std::vector<Tensor> apply_regions(const Op& op, std::span<const Region> regions, std::span<const Tensor> inputs,
                                  const void* attrs, Site site);

// While one lives this thread computes and records nothing: no tape, no gradients, no autocast, no checkpoint region.
class Unrecorded {
 public:
  Unrecorded();

 private:
  Scoped<Recorder*> tape_;
  Scoped<bool> grad_, abstract_, autocast_;
  Scoped<std::int32_t> region_;
  Scoped<NodeId> twin_;
  Scoped<VjpCalls*> calls_;
};

}  // namespace TAPEDECK_API
