// A Plan is plain data. It says where every byte of a replay lives, in which order the nodes run, which values are computed
// twice, and why.
//
// Words (DESIGN 7). peak = parameters, state, constants, inputs and outputs (each once, wherever the bytes live) + the arena,
// with workspace inside it. lower bound = the most such bytes alive at once in the plan's order. floor = the least peak any
// strategy here reaches for the graph. A budget bounds the peak and is hard.
//
// Invariants (check_plan() in capture/check/check_plan.h proves them, independently of the planner):
//  (1) values that are alive at the same time, under every order the segment DAG allows, overlap only if one is a window on the
//  other, a part
//      of the other, or computed in place of the other;
//  (2) every value is inside its buffer; an arena value is inside one chunk of the arena; offsets are aligned from the start of
//  the chunk, except
//      those of windows and parts;
//  (3) inputs and constants are never written; a state buffer is written only after every reader of its old bytes;
//  (4) peak_bytes == external_bytes + arena_bytes, and arena_bytes is the sum of the chunks; a chunk is larger than chunk_bytes
//  only if one value
//      or workspace fills it by itself;
//  (5) every region that runs by plan has a plan of its own, whose graph is that region, which keeps these invariants, and
//  whose frame fits the
//      workspace of the node (region_frames.h).
#pragma once

#include <tapedeck/capture/plan/optimization_level.h>
#include <tapedeck/capture/plan/wishes.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Which buffer holds a value's bytes.
enum class Where : std::uint8_t { nowhere, arena, input, state, constant, output };

// Why a value is where it is, and why it lives as long as it does.
enum class Reason : std::uint8_t {
  input,  // the caller gives it
  state,  // persists between replays
  constant,
  output,      // handed to the caller
  temporary,   // read soon after it is made
  saved,       // made in forward, and kept for a reader in backward (`reader`)
  recomputed,  // made by a clone just before the first node that needs it; `reader` is the last such node
  gradient,    // made in backward
  in_place,    // computed in the bytes of `other`
  part,        // written into its place in the bytes of `other`, a later value that joins it with other values
  alias,       // a window on the bytes of `other`
  update,      // becomes the new value of a state buffer
  unread,      // nobody reads it
};
const char* reason_name(Reason reason);

struct Placement {
  Where where = Where::nowhere;
  Reason reason = Reason::temporary;
  std::int32_t slot = kNone;  // index of the input, state value, constant or output slot; kNone in the arena
  std::int64_t offset = 0;    // bytes from the start of the buffer; in the arena of the first chunk (arena_chunks.h)
  ValueId other = kNone;      // for in_place, part and alias
  NodeId reader = kNone;      // the last reader; for saved and recomputed the reader that the value is kept for
  NodeId birth = kNone;  // the node that writes it, or writes the first of its parts; kNone for inputs, state, constants (alive
                         // from the start)
  NodeId death =
      kNone;  // the last node that needs the bytes, windows and in-place heirs not counted; node_count(): needed to the end
  bool dense = true;  // false: `strides` (in elements) apply
  std::int64_t strides[kMaxRank] = {};
};

struct Scratch {  // a node's workspace in the arena
  std::int64_t offset = 0;
  std::int64_t bytes = 0;  // 0 = none
};

// Why a segment ends where it does.
enum class SegmentEnd : std::uint8_t {
  last,    // nothing follows it
  full,    // with the next node it would be longer than the rule allows
  alone,   // its node, or the next node, never shares a segment: a host callback, a dynamic region, a copy between devices
  phase,   // the next node is of another phase, and the caller wants to run phases apart
  read,    // another segment already reads its results and must not wait for the next node
  waits,   // the next node waits for another segment too, and this segment must not wait with it
  merged,  // put together from pieces too small to be worth a task each
};
const char* segment_end_name(SegmentEnd end);

struct Segment {              // nodes that run as one task, in this order
  std::vector<NodeId> nodes;  // ascending; not always neighbours: the nodes of two chains may have been recorded in turn
  double cost_us = 0;
  std::vector<std::int32_t> successors;  // segments that wait for this one, ascending
  std::int32_t n_predecessors = 0;
  SegmentEnd end = SegmentEnd::last;
};

// How the segments were cut: the inputs of the rule and its results (capture/planner/segments/cut_segments.h describes the
// rule). Times are microseconds, by the costs that the plan was made with.
struct SegmentRule {
  std::string shape =
      "walk";  // walk: the nodes in their order, cut by cost; graph: cut along the dependences; lanes: a walk for each thread
  std::string placement = "tight";  // tight: bytes are used again in the order of nodes; apart: only where no two threads meet
  double dispatch_us = 0;           // the cost of starting a segment
  double least_us = 0;              // a segment should cost at least this much, so that dispatch is a fiftieth of it
  double most_us = 0;   // a segment of more than one node costs no more than this, because cancelling acts between segments
  double grain_us = 0;  // the bound that was used, between these two
  bool split_phases = false;
  double serial_us = 0;          // all nodes, one after the other
  double critical_path_us = 0;   // the longest path of nodes that wait for each other, each on one thread
  double makespan_us = 0;        // of the simulated run on Plan::threads, dispatch included
  double tight_makespan_us = 0;  // of the run if the bytes were placed tightly
  std::int64_t tight_peak_bytes = 0;
  bool operator==(const SegmentRule&) const = default;
};

struct Edge {  // `after` must not start before `before` has finished
  NodeId before = kNone;
  NodeId after = kNone;
  bool operator==(const Edge& o) const { return before == o.before && after == o.after; }
};

// One choice of a rematerialization strategy, in the order they were made.
struct Decision {
  std::string value;  // name in the captured graph
  std::int64_t bytes = 0;
  std::int32_t span = 0;             // schedule steps the value no longer spans
  double cost_us = 0;                // the cost of computing it again
  std::int32_t clones = 0;           // nodes added
  std::int64_t live_peak_bytes = 0;  // most bytes alive at once after this choice
  std::string reason;                // one sentence
};

// What a plan was asked for besides its budget, where no other field of the plan says so. Names stand for strategies, because a
// program may register its own.
struct PlanRequest {
  std::string strategy = "auto";  // as strategy_named() takes it
  bool recorded_order = false;    // no other order of nodes was looked for
  std::vector<Wish> wishes;       // without those that the program itself states
  double segment_us = 50;
  double parallel_peak = 1.15;
  bool operator==(const PlanRequest&) const = default;
};

struct Plan {
  Graph graph;                     // planned: clones in place, in execution order
  std::vector<Placement> values;   // by value
  std::vector<Scratch> workspace;  // by node
  std::vector<std::shared_ptr<const Plan>>
      region_plans;               // by region of the graph: its plan; null where the region does not run by plan
  std::vector<Segment> segments;  // in an order that their edges allow
  SegmentRule segment_rule;
  std::vector<bool> intra_op;       // by node: its kernel may use idle threads; empty: all may
  std::int32_t threads = 1;         // the number that the segments were cut for; the plan is valid for any number
  std::string costs = "estimate";   // where microseconds come from: estimate, calibrated, profile
  std::int32_t measured_nodes = 0;  // the number of nodes whose microseconds the profile knew; clones not counted
  std::vector<Edge> reuse_edges;    // edges added because bytes are used again
  std::vector<Type> output_slots;   // buffers handed to the caller, one per distinct returned value that needs one
  std::vector<Decision> decisions;
  std::vector<std::string>
      unchanged_state;  // names of state that the captured graph updates with its own value: no node writes it

  PlanRequest asked;
  bool feasible = true;
  std::string infeasible_reason;                     // names the floor, and the node and the tensors that set the floor
  OptimizationLevel level = OptimizationLevel::all;  // the passes that ran before planning
  std::string strategy = "none";                     // none, regions, greedy, search, ...
  std::string order = "recorded";                    // how the order of nodes was found (planner/order/find_order.h)
  std::int64_t alignment = 64;                       // of the values in the arena, from the start of their chunk
  std::int64_t budget_bytes = -1;                    // -1 = none
  std::int64_t arena_bytes = 0;
  std::int64_t chunk_bytes = 0;  // the arena is allocated in chunks of at most this many bytes; 0 = as one block
  std::vector<std::int64_t>
      chunks;  // the bytes of each chunk, end to end in the arena's range of offsets, largest first; empty: one block
  std::int64_t external_bytes = 0;  // parameters, state, constants, inputs, outputs
  std::int64_t peak_bytes = 0;
  std::int64_t lower_bound_bytes = 0;
  std::int64_t floor_bytes = 0;
  std::int64_t keep_all_peak_bytes = 0;
  double cost_us = 0;  // model cost of all nodes run
  double keep_all_cost_us = 0;
  // No plan that fits budget_bytes costs less, in any order of nodes; where bound_from names an order of first runs, none whose
  // first runs are in that order. 0: not worked out.
  double cost_lower_bound_us = 0;
  std::string bound_from;             // how that bound was got; empty: not worked out
  double solve_ms = 0;                // how long planning took; equal plans may differ in it
  std::int32_t nodes = 0;             // clones counted
  std::int32_t recomputed_nodes = 0;  // the number of clones

  // The plans of the regions of the node. REQUIRES: region_plans has an entry for each region of the graph.
  std::span<const std::shared_ptr<const Plan>> region_plans_of(const Node& node) const {
    return {region_plans.data() + node.first_region, static_cast<std::size_t>(node.n_regions)};
  }

  double recompute_cost_ratio() const { return keep_all_cost_us > 0 ? cost_us / keep_all_cost_us : 1.0; }
};

// Live bytes during each node of the plan's order: the curve that the viewer draws. External buffers, workspace, and the
// operands and results of the node are included. The maximum is lower_bound_bytes.
std::vector<std::int64_t> live_bytes(const Plan& plan);

}  // namespace TAPEDECK_API
