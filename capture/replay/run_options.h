// Further requests to a run: to note times, to stop early, to tell how far it is. And monitors, which see values as they come.
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
  // The run looks at the flag between segments and between the passes of loops, until the first write of state begins. If the
  // flag is up, run() throws Cancelled: no state has changed, the executor can run again, and the outputs of the run before are
  // gone. If the flag goes up later, the step runs to its end.
  const std::atomic<bool>* cancel = nullptr;
  // Called with the fraction of the cost of the step that is done: from any thread, one call at a time, some 20 ms apart, and
  // with 1 at the end. An exception that it throws stops the run as `cancel` does, and run() throws it; after the first write
  // of state the step runs to its end before that.
  std::function<void(double)> progress = {};
};

// A value that a monitor is shown.
struct Monitored {
  std::string name;     // of the value, in the plan's graph
  NodeId node = kNone;  // of the plan's graph: its maker, or, for an operand, the node that is going to read it
  bool operand = false;
  Tensor value;  // a copy of its own
};

struct MonitorOptions {
  bool operands = false;  // show the operands of the nodes too, just before the nodes run
};

// Called on the thread that runs the node, one call at a time, in the order in which nodes run (on one thread, the order of the
// plan). An exception ends the run as an error of the kernel of that node does. It must not call the executor that calls it.
using MonitorFunction = std::function<void(const Monitored& seen)>;

}  // namespace TAPEDECK_API
