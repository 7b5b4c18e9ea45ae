// Ops that do nothing but join: where each operand lies within the result. Whoever makes an operand may write it there at once (the plan
// decides: capture/analysis/parts.h), and a node all of whose operands lie in place has nothing left to do.
#pragma once

#include <tapedeck/engine/op.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The mirror of Op::view: the window of result 0 that holds operand `input`, in elements, from the result's strides. Windows of different
// operands have no element in common. The kernel writes results of any strides, and skips operands that lie in their windows already.
using PartRule = void (*)(std::span<const Type> inputs, int input, const void* attrs, const std::int64_t* result_strides, std::int64_t* offset,
                          std::int64_t* strides);

// Null for ops that join nothing. Declared in the op's family (.cpp); a test proves every declaration on the op's examples.
PartRule part_rule(const Op& op);
std::vector<const Op*> joining_ops();

// Is the result for operands a, b, c that for (the result for a, b), c?
bool joins_in_turn(const Op& op);

}  // namespace tapedeck
