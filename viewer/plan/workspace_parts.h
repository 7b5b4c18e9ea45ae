// The workspace of a node with regions, in parts and in words: the frame of the run of a region, and the tape of checkpoints.
//
//     workspace of the node in the plan around it
//     +-------+----------------------------+---------------------------------+
//     | index | frame: one run of a region | tape: the checkpoints of a loop |
//     +-------+----------------------------+---------------------------------+
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/words/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::viewer {

struct WorkspacePart {
  std::string name;      // "index", "frame", "tape"
  std::string sentence;  // says what it is for
  std::int64_t bytes = 0;
};

// By address; their sum is the workspace of the node. None if the regions of the node do not run by plan. The sentence of the
// frame tells about this region; kNone: about all of them.
std::vector<WorkspacePart> workspace_parts(const PlanModel& around, NodeId n, int region, const ByteUnit& unit);

// The bytes of the results of a plan: in the frame of a region, they lie below the arena.
std::int64_t result_bytes(const Plan& plan);

}  // namespace tapedeck::viewer
