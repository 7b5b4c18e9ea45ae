// In which part of a step a node runs when forward, backward and update run apart.
//
// Most nodes run in their own phase. Three kinds of nodes run in a later phase than the one that they bear:
//
//     %h2 = relu(%a)    [of=%h]             a clone of a forward node, made for a backward reader: runs with that reader
//     %h = relu(%a)     [after=[%g]]        a node that was moved to just before its first reader: runs with that reader
//     %n = norm(%g)                         forward by name, but it reads a gradient: runs once that is there
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <vector>

namespace tapedeck {

// By node. No node runs in an earlier phase than its operands or the nodes that it waits for. O(nodes + operands).
std::vector<Phase> run_phases(const Graph& graph);

}  // namespace tapedeck
