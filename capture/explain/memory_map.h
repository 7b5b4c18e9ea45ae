// A plan's memory as boxes: address x time. The pictures draw these boxes, `plan --explain` counts them, and the CSV lists
// them.
//
// Time is the number of a node in the plan's order. A box is a value with bytes of its own (windows have none, and neither have
// the parts of a joined value, which is there from its first part on), or a node's workspace. Where an output takes over its
// operand's bytes one box ends where the next begins, so that the boxes alive during a node add up to live_bytes() there.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The role of a value in the plan; the viewer has a colour for each role.
enum class MemoryRole : std::uint8_t { state, input, constant, output, saved, recomputed, gradient, temporary, workspace };
inline constexpr int kMemoryRoleCount = 9;
const char* memory_role_name(MemoryRole role);      // "parameter/state", "input", ...
std::uint32_t memory_role_colour(MemoryRole role);  // 0xRRGGBB; the viewer's (viewer/words/colours.h)

struct MemoryBox {
  ValueId value = kNone;  // kNone: workspace
  NodeId node = kNone;    // the node that makes it; kNone for a value that is there from the start
  Where where = Where::arena;
  std::int32_t slot = kNone;  // of the input, state value, constant or output
  MemoryRole role = MemoryRole::temporary;
  std::int64_t offset = 0;      // in the arena's range, chunk on chunk; externals stand one on the other, the first at 0
  std::int64_t bytes = 0;       // never 0
  NodeId first = 0, last = 0;   // nodes during which it is alive, both included
  std::int32_t buffer = kNone;  // of arena boxes: boxes of one number hand the same bytes on, one to the next
};

struct MemoryMap {
  std::vector<MemoryBox> external;  // state, inputs, constants, outputs: through the whole step
  std::vector<MemoryBox> arena;     // values, then workspaces; each in the order of nodes
  std::int32_t buffers = 0;         // of the arena
};

// REQUIRES: check_plan(plan) finds nothing. Thread safe. O(values + nodes).
MemoryMap map_memory(const Plan& plan);

MemoryRole memory_role(const Plan& plan, ValueId v);
// Name for a person: "%h", or "workspace of `...`".
std::string box_name(const Plan& plan, const MemoryBox& box);

}  // namespace TAPEDECK_API
