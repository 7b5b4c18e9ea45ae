// The first node of a replay whose result is not, bit for bit, what eager execution computes. An output that differs says that
// something is wrong; this says where.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/tensor_difference.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <optional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct NodeDifference {
  std::string value;            // of the planned graph: the first result that differs
  std::string op, node, site;   // its op, its node as text, the place of the user's call (may be empty)
  TensorDifference difference;  // got: the replay, expected: eager execution
};

// Runs one step of the plan and the same step of `captured` eagerly, both from these values, and compares the results of each
// planned node that the captured graph has under the same name; a clone counts as the node that it repeats. The first in the
// order of the plan is returned. Empty if all results are equal. Needs the memory of an executor of its own, and of all values
// of the eager step at once. Errors are those of Executor and run_eagerly().
std::optional<NodeDifference> first_differing_node(const Plan& plan, const Graph& captured, const std::vector<Tensor>& inputs,
                                                   const std::vector<Tensor>& state, int threads = 1);

}  // namespace TAPEDECK_API
