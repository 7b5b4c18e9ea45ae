// Which sizes follow from which sizes: partial shapes spread over a graph, forwards and backwards.
//
//     known: %a [?,10], %b [12,?]      %c = add(%a, %b)      found: %a, %b, %c all [12,10]
//     known: %x [7,100], %y [?,11]     %y = linear(%x, %w)   found: %w [100,11], %y [7,11]
//
// Ops have no rules for this beside their inference rule. The sizes of the graph are a sample, and the inference rule is asked
// what happens if an axis of the sample grows. Axes that must grow together are equal. A result axis that grows by the same
// amount is equal to the operand axis, or is its sum with others (concatenation, padding, convolution of stride one); a sum can
// be solved for the one unknown size. Any other result axis (stride two, reshape) is found forwards only, once all operands are
// known. Axes of size 1 in the sample stay 1 where the op repeats them.
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

// Spreads known sizes of some values, by name, to all values. The graph gives ops, attributes, ranks and the sample; its sizes
// are no facts, except those of constants. Throws TypeError that names the node, both sizes and the values if two facts
// contradict each other, and for names or ranks that the graph does not have.
std::map<std::string, PartialShape> infer_shapes(const Graph& graph, const std::map<std::string, PartialShape>& known);

}  // namespace TAPEDECK_API
