// A node with regions as an instruction of a replay. Each region runs by its own plan (Plan::region_plans), in a frame inside
// the workspace of the node (region_frames.h), so a loop allocates nothing. Other ops with regions run by the interpreter, on
// memory of their own: the sizes of their values are not known before the run.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/kernel.h>

#include <memory>

namespace tapedeck::replay {

class ControlRunner {
 public:
  virtual ~ControlRunner() = default;
  virtual void run(const KernelCall& call) = 0;  // throws the exceptions of its kernels
};

// Throws InvalidGraphError or DeviceError as Program does. The plan outlives the runner.
std::unique_ptr<ControlRunner> make_control_runner(const Plan& plan, const Node& node);

// The kernel of such an instruction; call.attrs is the ControlRunner.
void run_control(const KernelCall& call);

// The runner of each kind of node.
std::unique_ptr<ControlRunner> make_loop_runner(const Plan& plan, const Node& node);       // while_loop, scan
std::unique_ptr<ControlRunner> make_branch_runner(const Plan& plan, const Node& node);     // cond
std::unique_ptr<ControlRunner> make_loop_grad_runner(const Plan& plan, const Node& node);  // loop_grad
std::unique_ptr<ControlRunner> make_fused_runner(const Plan& plan, const Node& node);      // fused
std::unique_ptr<ControlRunner> make_unplanned_runner(const Plan& plan, const Node& node);  // all others

}  // namespace tapedeck::replay
