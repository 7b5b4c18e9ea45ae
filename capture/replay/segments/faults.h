// The fault of a node, and the error that a run throws for it.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <exception>
#include <string>

namespace tapedeck::replay {

// The fault of one node: something that it threw, or a text that its kernel reported.
struct Fault {
  NodeId node = kNone;
  std::exception_ptr thrown;
  std::string reported;  // empty if something was thrown
};

// Throws an ExecutionError that names the node and its call site; the message ends with `end`. The original exception is
// nested in it. A Cancelled stays one.
[[noreturn]] void throw_fault(const Graph& graph, const Fault& fault, const std::string& end);

}  // namespace tapedeck::replay
