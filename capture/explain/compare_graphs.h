// What differs between two graphs. Nodes are matched by name and by structure, so that a node that was added or renamed does
// not make everything behind it look different.
//
//     A                            B
//     %a = exp(%x)                 %a = exp(%x)            equal
//     %b = relu(%a)                %c = relu(%a)           renamed: the same op of the same operands
//     %d = add(%b, %a)             %d = sub(%c, %a)        changed: the same name
//                                  %e = neg(%d)            only in B
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GraphDifference {
  const char* what = "";  // input, state, node, output, update
  std::string name;       // in A, or in B if A has none
  std::string a, b;       // how it reads in each graph; empty where it is not
};

struct GraphComparison {
  std::int32_t nodes_a = 0, nodes_b = 0;
  std::int32_t same = 0;                                     // nodes that are equal, names included
  std::vector<std::pair<std::string, std::string>> renamed;  // nodes that are equal but for their names, in A and B
  std::int32_t changed = 0, only_a = 0, only_b = 0;          // nodes
  std::int32_t moved = 0;                    // the fewest matched nodes that, put elsewhere, give A the order of B
  std::vector<GraphDifference> differences;  // inputs, state, nodes in the order of A then of B, outputs, updates

  // Other names are no difference; another order is one.
  bool equal() const { return differences.empty() && moved == 0; }
};

// Two nodes are equal if op, attributes, constants, regions and types are, and their operands are matched to each other. Notes
// (phase, module path, call site) and order edges do not count. O(nodes log nodes), plus the bytes of constants.
GraphComparison compare_graphs(const Graph& a, const Graph& b);

// By value of A: the value of B that compare_graphs() matches it with, or kNone. No value of B is matched twice. O(nodes log
// nodes), plus the bytes of constants.
std::vector<ValueId> matched_values(const Graph& a, const Graph& b);

}  // namespace TAPEDECK_API
