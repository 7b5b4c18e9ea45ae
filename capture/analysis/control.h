// Nodes with regions as a plan sees them: a region is planned by the same rules as a graph, with everything kept, and its arena and
// results stand in the workspace of the node. So the planned peak holds for what happens inside.
#pragma once

#include <tapedeck/capture/plan.h>
#include <tapedeck/engine/graph.h>

#include <cstdint>
#include <memory>

namespace tapedeck {

struct Calibration;

// The plan of a region; made once for each. Thread safe. Throws what make_plan throws.
std::shared_ptr<const Plan> plan_of(const Region& region);

// What one run of a region needs beside its inputs, each part aligned: its arena, its output slots, and copies of inputs that it returns as
// they are, because results may be written over them.
inline constexpr std::int64_t kFrameAlignment = 64;
constexpr std::int64_t framed(std::int64_t bytes) { return (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment; }
std::int64_t frame_bytes(const Plan& plan);

// Workspace of a node: the index of the pass, the largest frame of its regions, and for loop_grad the loop tape, if the number of
// passes is bounded.
std::int64_t control_workspace(const Graph& graph, const Node& node);
// Of the passes, or of the longer branch. A loop of unknown length counts as kAssumedTrips passes.
inline constexpr std::int64_t kAssumedTrips = 16;
double control_cost_us(const Graph& graph, const Node& node, const Calibration* calibration = nullptr);

// Of loop_grad: carried operands, their bytes on the tape, and how many are on it at once; -1 if that is not known before it runs.
struct LoopTape {
  std::int64_t entry_bytes = 0, entries = 0;
  std::int64_t bytes() const { return entries < 0 ? 0 : entry_bytes * entries; }
};
LoopTape loop_tape(const Graph& graph, const Node& node);

}  // namespace tapedeck
