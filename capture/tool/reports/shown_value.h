// A value that `replay --value` shows, where its step stopped, and both as text and JSON.
#pragma once

#include <tapedeck/capture/replay/tensor_statistics.h>
#include <tapedeck/capture/replay/time_travel.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::tool {

struct ShownValue {
  std::string name, op;  // the op that makes it; "input" and "state" for those
  NodeId node = kNone;   // of the planned graph; kNone for inputs and state
  Type type;
  TensorStatistics statistics;
  Histogram histogram;
  std::string numbers;           // its elements, those at the corners if there are many
  std::int32_t nodes_again = 0;  // that ran again to make it; 0: its bytes were there
  std::int64_t extra_bytes = 0;  // the most bytes that this took
};
// REQUIRES: `seen` is the value v of `graph`.
ShownValue show_value(const Graph& graph, ValueId v, const std::string& name, const Inspected& seen);

std::string text_of_values(const std::vector<ShownValue>& values);

// Where the last step stopped.
struct ShownStop {
  StopReason reason = StopReason::end;
  NodeId node = kNone;
  std::int32_t nodes = 0, nodes_left = 0;  // of the step
  std::string node_text = {};              // empty at the end
  std::string value = {};                  // of not_finite: the result that is not finite, its element, and that number
  std::int64_t element = 0;
  double number = 0;
};
std::string text_of_stop(const ShownStop& stop);

}  // namespace tapedeck::tool
