// Stopping inside a step, and looking at values there: where a step is to stop, where it has stopped, and a value that was
// looked at. Executor::run_until(), back() and inspect() use these.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Where Executor::run_until() stops. The first of these that the step comes to counts; nodes that have run already do not.
struct Breakpoints {
  std::vector<NodeId> nodes = {};  // of plan().graph: behind these nodes
  // Behind the nodes whose op, module path or result has a name that matches ('*': any characters, '?': one).
  std::vector<std::string> names = {};
  bool nan = false;                          // behind the first node that makes NaN
  bool infinite = false;                     // behind the first node that makes an infinity, such as the mask of an attention
  const std::atomic<bool>* pause = nullptr;  // behind the node that runs when the flag goes up
};

enum class StopReason : std::uint8_t {
  end,         // the step has come to its end
  node,        // Breakpoints::nodes
  name,        // Breakpoints::names
  not_finite,  // Breakpoints::nan, Breakpoints::infinite
  pause,       // Breakpoints::pause
};
const char* stop_reason_name(StopReason reason);  // "end", "node", "name", "not_finite", "pause"

// Where a step has stopped.
struct Stop {
  StopReason reason = StopReason::end;
  NodeId node = kNone;          // behind this node of plan().graph; kNone at the end
  std::int32_t nodes_left = 0;  // of the step
  ValueId value = kNone;        // not_finite: the result of the node that is not finite,
  std::int64_t element = 0;     // its first such element, in C order,
  double number = 0;            // and the element itself
};

// A value that Executor::inspect() has looked at.
struct Inspected {
  Tensor value;                  // a copy that belongs to the caller; dense
  std::int32_t nodes = 0;        // how many nodes ran again to make it; 0: it was copied from bytes that were there
  std::int64_t extra_bytes = 0;  // the most bytes that this took at once, the copy itself and the workspace of nodes included
};

}  // namespace TAPEDECK_API
