// A node with regions as a step of a replay: its regions are plans of their own, run in a frame inside the node's workspace, so that a
// loop allocates nothing. Ops with regions that have no such plan (their values' sizes are not known) run by the interpreter, on memory
// of their own.
#pragma once

#include <tapedeck/engine/graph.h>
#include <tapedeck/kernels/kernel.h>

#include <memory>

namespace tapedeck::replay {

class ControlStep {
 public:
  virtual ~ControlStep() = default;
  virtual void run(const KernelCall& call) = 0;   // throws what its kernels throw
};

// Throws InvalidGraphError or DeviceError as Program does. `graph` outlives the step.
std::unique_ptr<ControlStep> make_control_step(const Graph& graph, const Node& node);

// The kernel of such a step; call.attrs is the ControlStep.
void run_control_step(const KernelCall& call);

}  // namespace tapedeck::replay
