// Why every value lies in its place, and why a budget cannot be met.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <cstdint>
#include <string>

namespace tapedeck {

// Fills in Placement::reason. If several reasons hold, the first of this list is given:
//   input, state, constant (the buffer itself) - alias - in_place - output - update - recomputed - unread -
//   saved (made in forward, read in backward or update) - gradient (made in backward) - temporary
void give_reasons(Plan* plan);

// The first node at which the plan has most bytes alive, and these bytes; kNone and 0 if the graph has no nodes.
struct PeakNode {
  NodeId node = kNone;
  std::int64_t live_bytes = 0;
};
PeakNode peak_node(const Plan& plan);

// The node where the plan's live bytes are highest and the largest tensors alive there: "at `%h: f32[4,8] = relu(%x)`: %x 128
// bytes, ..."
std::string describe_peak(const Plan& plan);

}  // namespace tapedeck
