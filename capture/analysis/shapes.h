// Which sizes follow from which: partial shapes spread over a graph, forwards and backwards.
//
//     known: %a [?,10], %b [12,?]      %c = add(%a, %b)      found: %a, %b, %c all [12,10]
//     known: %x [7,100], %y [?,11]     %y = linear(%x, %w)   found: %w [100,11], %y [7,11]
//
// No op has rules for this beyond its inference rule: the graph's own sizes are a sample on which that rule is asked what
// happens if an axis grows. Axes that may only grow together are equal; a result that grows by as much is equal to them or
// their sum with others (concatenation, padding, convolution of stride one), and can be solved for the one that is not known. A
// result that answers otherwise (stride two, reshape) is found forwards only, once all operands are known. Axes of size 1 in
// the sample stay 1 where the op repeats them.
//
// Cost: a few inferences per axis and node, and one pass over the nodes for each step of the spread. Thread safe.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <map>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

inline constexpr std::int64_t kUnknownSize = -1;
using PartialShape = std::vector<std::int64_t>;  // kUnknownSize where a size is not known

// What is known of some values, by name, becomes what follows for all of them. The graph gives ops, attributes, ranks and the
// sample; its sizes are no facts, but for those of constants. Throws TypeError naming the node, both sizes and the values where
// two facts contradict each other, and for names or ranks that the graph does not have.
std::map<std::string, PartialShape> infer_shapes(const Graph& graph, const std::map<std::string, PartialShape>& known);

}  // namespace TAPEDECK_API
