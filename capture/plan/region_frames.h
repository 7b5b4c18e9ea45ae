// The memory that a node with regions needs, as a function of the plans of its regions. A region is planned as a graph of its
// own. Its arena and its results lie in a frame inside the workspace of the node, so the planned peak holds for what happens
// inside the node too.
//
// The workspace of such a node:
//
//     0          64                     64 + the largest frame
//     +----------+----------------------+-------------------------------+
//     | index of | frame of the region  | loop tape (loop_grad alone)   |
//     | the pass | that runs now        |                               |
//     +----------+----------------------+-------------------------------+
//
// Nothing here plans. The planner, the checker and the executor all ask these functions.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <span>

namespace tapedeck {

// Each part of the workspace starts at a multiple of this number of bytes.
inline constexpr std::int64_t kFrameAlignment = 64;
constexpr std::int64_t framed(std::int64_t bytes) { return (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment; }

// Do the regions of the node run on planned memory? The regions of `dynamic` do not: the sizes of their values are not known
// before a run. Nor does the region of `fused`, whose values never take memory.
bool runs_regions_by_plan(const Node& node);

// The bytes that one run of a region needs beside its inputs: its arena, its output slots, and copies of the inputs that it
// returns. A returned input is copied because the results of the node may be written over it.
TAPEDECK_API std::int64_t frame_bytes(const Plan& region_plan);

// The tape of loop_grad: the carried operands of the passes that are still to be walked back.
struct LoopTape {
  std::int64_t entry_bytes = 0;  // of the carried operands of one pass
  std::int64_t entries = 0;      // on the tape at once; -1 if the number of passes is not known before the run
  std::int64_t bytes() const { return entries < 0 ? 0 : entry_bytes * entries; }
};
// Throws InvalidGraphError if the tape would hold more than 2^50 bytes.
TAPEDECK_API LoopTape loop_tape(const Graph& graph, const Node& node);

// The workspace of a node with regions; 0 if its regions do not run by plan. REQUIRES: `region_plans` has a plan for each
// region. Throws as loop_tape.
std::int64_t region_workspace(const Graph& graph, const Node& node, std::span<const std::shared_ptr<const Plan>> region_plans);

// The workspace that node n needs in this plan, by the kernel of its op or by the plans of its regions. Throws as loop_tape.
std::int64_t needed_workspace(const Plan& plan, NodeId n);

}  // namespace tapedeck
