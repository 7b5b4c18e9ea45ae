// A fused node as calls of its nodes, one by one, for a device that has no kernel for the whole:
//
//     %y = fused(%x, %b)  { %t = add; %y = tanh; }      add(x, b) -> scratch,  tanh(scratch) -> y
//
// Values inside lie in scratch memory, in slots that are used again when the last reader has run. A result goes to its place at
// once, unless the place overlaps an operand: a later node may read the operand still. Then it is copied at the end.
#pragma once

#include <tapedeck/capture/replay/program/buffer_table.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck::replay {

struct FusedCalls {
  struct Call {
    NodeId node = kNone;  // of the region
    std::vector<BufferView> inputs;
    BufferView output;
  };
  struct Copy {
    BufferView from, to;
  };

  std::vector<Call> calls;
  std::vector<Copy> copies;  // after all calls
  std::int64_t scratch_bytes = 0;
};

// `inputs` and `outputs` are those of the fused node; operands have the sizes of the results, with strides of 0 where they are
// broadcast. Offsets into `scratch` begin at 0 and are multiples of 256.
FusedCalls fused_calls(const Graph& region, std::span<const BufferView> inputs, std::span<const BufferView> outputs,
                       BufferId scratch);

}  // namespace tapedeck::replay
