// Monitors that are shown the inputs of nodes under names of their own, as MXNet's monitor_all does.
//
//     e.monitor("fc1*", with_input_names([](const Monitored& m) { ... }), {.operands = true});
//
//     %fc1.linear = linear(%x, %fc1.weight, %fc1.bias)      shows x, fc1.weight, fc1.bias, fc1.linear
//     %fc1.relu = relu(%fc1.linear)                         shows fc1.relu.input0, fc1.relu
#pragma once

#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

// The name of operand `i` of a node: inputs and state of the graph have their own name, and every other operand is called
// after the node that reads it, which has the name of its first result: "fc1.relu.input0". Ops have no names for their
// operands, so operands are counted from 0. REQUIRES: the node has such an operand. O(1).
std::string input_name(const Graph& graph, NodeId n, std::int32_t i);

// A function for monitor() of an executor or a captured step. It calls `fn`, but operands come with the names of input_name(),
// each operand of a node by itself, except that an input or a state value is shown once where it is read twice in a row. The
// pattern of the monitor and its option `operands` mean what they always do: without the option, no operands are shown.
// Results keep their names. Throws UsageError if there is no function.
MonitorFunction with_input_names(MonitorFunction fn);

namespace replay {
bool has_input_names(const MonitorFunction& fn);  // whether with_input_names() made it
}  // namespace replay

}  // namespace TAPEDECK_API
