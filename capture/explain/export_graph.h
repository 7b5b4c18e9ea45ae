// A graph for other programs: Graphviz draws it, and a script reads it line by line.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// The DOT language of Graphviz: `dot -Tsvg`. A box for each node, coloured by phase, with a dashed border for what is
// recomputed; edges carry the values, with their types. Inputs, state and outputs have shapes of their own, updates are dashed
// edges, order edges dotted ones. Valid whatever bytes names hold. Deterministic. O(nodes + edges).
std::string graph_dot(const Graph& graph);

// One JSON object a line, each with a "kind": graph (with "schema": "tapedeck.graph/1" and counts), then input, state, node (in
// execution order), output and update. A node has its op and version, operands and results by name, types, attributes, phase,
// module path and call site; a constant has its type and, if it is small, its text; a control-flow node has its regions as
// text. Keys are only ever added. Deterministic. O(nodes + edges).
std::string graph_jsonl(const Graph& graph);

}  // namespace TAPEDECK_API
