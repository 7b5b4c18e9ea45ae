// A node with regions as a step of a replay. Each region runs by its own plan (Plan::region_plans), in a frame inside the
// workspace of the node (region_frames.h), so a loop allocates nothing. Other ops with regions run by the interpreter, on
// memory of their own: the sizes of their values are not known before the run.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/kernel.h>

#include <memory>

namespace tapedeck::replay {

class ControlStep {
 public:
  virtual ~ControlStep() = default;
  virtual void run(const KernelCall& call) = 0;  // throws what its kernels throw
};

// Throws InvalidGraphError or DeviceError as Program does. The plan outlives the step.
std::unique_ptr<ControlStep> make_control_step(const Plan& plan, const Node& node);

// The kernel of such a step; call.attrs is the ControlStep.
void run_control_step(const KernelCall& call);

}  // namespace tapedeck::replay
