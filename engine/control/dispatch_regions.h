// One call of an op with regions: infers the types, runs the regions, and records one node.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/kernels/export.h>

#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Applies an op of control flow. The results have bytes of their own. If an operand is abstract, or the thread is in abstract
// mode, the results are abstract and nothing runs. Throws TypeError "[op] ... (file:line)" before anything is recorded.
std::vector<Tensor> apply_regions(const Op& op, std::span<const Region> regions, std::span<const Tensor> inputs,
                                  const void* attrs, Site site);

// As long as an object of this class lives, its thread computes without recording: no tape, no gradients, no autocast, no
// checkpoint region.
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
