// Values that share bytes: a result computed in place of its operand, a window on a value, a part of a value that joins it with
// others, a new value in the buffer of its state. They form chains, which the memory plan outlines and the details list.
//
//     %a  ------+              %b is computed in the bytes of %a, which nobody reads any more
//          %b  -+-----+        %c is a window on the bytes of %b
//               %c  --+
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// A value that shares bytes with others.
struct ByteChainLink {
  ValueId value = kNone;
  ValueId from = kNone;  // the value whose bytes it lies in; kNone for the first of the chain
  std::string sentence;  // "%b is computed in the bytes of %a, which nobody reads any more"
};

// The values that share bytes with v, itself among them, in the order in which they are made; empty if there is no other.
// O(k log k) for k such values.
std::vector<ByteChainLink> byte_chain(const PlanModel& model, ValueId v);

// Where the bytes of one value lie in the picture of the plan, for as long as the value needs them: for a window or a part a
// piece of the rectangle that it lies in. Without bytes if the value has no place in the arena or in a buffer.
PlanRect place_in_plan(const PlanModel& model, ValueId v);

}  // namespace tapedeck::viewer
