// What a run may be asked beside running: to note times, to stop early, to say how far it is; and who wants to see values as
// they come.
#pragma once

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <functional>
#include <string>

namespace tapedeck TAPEDECK_API {

struct RunOptions {
  Timeline* timeline = nullptr;  // when each node ran; its first run allocates the slices
  // Looked at between segments, until the first write of state begins: then run() throws Cancelled (planner.h), no state has
  // changed, and the executor can run again; the outputs of the run before are gone. Raised later, the step runs to its end.
  const std::atomic<bool>* cancel = nullptr;
  // Called with the fraction of the cost of the step that is done, from any thread, one call at a time, some 20 ms apart, and
  // with 1 at the end. What it throws stops the run as `cancel` does and leaves run() as it is; after the first write of state
  // the step ends first.
  std::function<void(double)> progress = {};
};

// A value that a monitor is shown.
struct Monitored {
  std::string name;     // of the value, in the plan's graph
  NodeId node = kNone;  // of the plan's graph: the one that made it, or, for an operand, that is going to read it
  bool operand = false;
  Tensor value;  // a copy of its own
};

struct MonitorOptions {
  bool operands = false;  // show what the nodes read too, just before they run
};

// Called one at a time, on whatever thread runs the node, in the order in which nodes run (with one thread, the plan's). What
// it throws ends the run as a kernel's error at that node does. It must not call the executor that calls it.
using MonitorFunction = std::function<void(const Monitored& seen)>;

}  // namespace TAPEDECK_API
