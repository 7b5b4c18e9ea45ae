// A Plan is plain data: where every byte of a replay lives, in what order nodes run, what is computed twice, and why.
//
// Words (DESIGN 7). peak = parameters, state, constants, inputs and outputs (each once, wherever the bytes live) + the arena, with
// workspace inside it. lower bound = the most such bytes alive at once in the plan's order. floor = the least peak any strategy
// here reaches for the graph. A budget bounds the peak and is hard.
//
// Invariants (check_plan() in capture/plan_check.h proves them, independently of the planner):
//  (1) values that are alive at the same time, under every order the segment DAG allows, overlap only if one is a window on, or was
//      computed in place of, the other;
//  (2) every value is inside its buffer, arena values inside the arena, all offsets aligned;
//  (3) inputs and constants are never written; a state buffer is written only after every reader of its old bytes;
//  (4) peak_bytes == external_bytes + arena_bytes.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/engine/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Which buffer holds a value's bytes.
enum class Where : std::uint8_t { nowhere, arena, input, state, constant, output };

// Why a value is where it is, and why it lives as long as it does.
enum class Reason : std::uint8_t {
  input,       // the caller's
  state,       // persists between replays
  constant,
  output,      // handed to the caller
  temporary,   // read soon after it is made
  saved,       // made in forward, kept for a backward reader (`reader`)
  recomputed,  // made again by a clone, just before `reader`
  gradient,    // made in backward
  in_place,    // computed in the bytes of `other`
  alias,       // a window on the bytes of `other`
  update,      // becomes the new value of a state buffer
  unread,      // nobody reads it
};
const char* reason_name(Reason reason);

struct Placement {
  Where where = Where::nowhere;
  Reason reason = Reason::temporary;
  std::int32_t slot = kNone;     // index of the input, state value, constant or output slot; kNone in the arena
  std::int64_t offset = 0;       // bytes from the start of the buffer
  ValueId other = kNone;         // for in_place and alias
  NodeId reader = kNone;         // the last reader; for saved and recomputed the one the value is kept for
  NodeId birth = kNone;          // node that writes it; kNone for inputs, state, constants (alive from the start)
  NodeId death = kNone;          // last node that needs the bytes, windows and in-place heirs not counted; node_count() = to the end
  bool dense = true;             // false: `strides` (in elements) apply
  std::int64_t strides[kMaxRank] = {};
};

struct Scratch {                 // a node's workspace in the arena
  std::int64_t offset = 0;
  std::int64_t bytes = 0;        // 0 = none
};

struct Segment {                   // nodes that run as one task, in this order
  std::vector<NodeId> nodes;       // ascending; not always neighbours: a chain whose nodes were recorded between those of another
  double cost_us = 0;
  std::vector<std::int32_t> successors;  // segments that wait for this one, ascending
  std::int32_t n_predecessors = 0;
};

struct Edge {                    // `after` must not start before `before` has finished
  NodeId before = kNone;
  NodeId after = kNone;
  bool operator==(const Edge& o) const { return before == o.before && after == o.after; }
};

// One choice of a rematerialization strategy, in the order they were made.
struct Decision {
  std::string value;             // name in the captured graph
  std::int64_t bytes = 0;
  std::int32_t span = 0;         // schedule steps the value no longer spans
  double cost_us = 0;            // what computing it again costs
  std::int32_t clones = 0;       // nodes added
  std::int64_t live_peak_bytes = 0;   // most bytes alive at once after this choice
  std::string reason;            // one sentence
};

struct Plan {
  Graph graph;                            // planned: clones in place, in execution order
  std::vector<Placement> values;          // by value
  std::vector<Scratch> workspace;         // by node
  std::vector<Segment> segments;          // in an order that their edges allow
  std::vector<bool> intra_op;             // by node: its kernel may use idle threads; empty: all may
  std::int32_t threads = 1;               // that the segments were cut for; the plan is valid for any number
  std::string costs = "estimate";         // where microseconds come from: estimate, calibrated, profile
  std::int32_t measured_nodes = 0;        // whose microseconds the profile knew; clones not counted
  std::vector<Edge> reuse_edges;          // added because bytes are used again
  std::vector<Type> output_slots;         // buffers handed to the caller, one per distinct returned value that needs one
  std::vector<Decision> decisions;

  bool feasible = true;
  std::string infeasible_reason;          // the floor, the node and the tensors that set it
  std::string strategy = "none";          // none, regions, greedy
  std::int64_t alignment = 64;
  std::int64_t budget_bytes = -1;         // -1 = none
  std::int64_t arena_bytes = 0;
  std::int64_t external_bytes = 0;        // parameters, state, constants, inputs, outputs
  std::int64_t peak_bytes = 0;
  std::int64_t lower_bound_bytes = 0;
  std::int64_t floor_bytes = 0;
  std::int64_t keep_all_peak_bytes = 0;
  double cost_us = 0;                     // model cost of all nodes run
  double keep_all_cost_us = 0;
  double solve_ms = 0;                    // not part of the plan's identity
  std::int32_t nodes = 0;                 // clones counted
  std::int32_t recomputed_nodes = 0;      // the clones

  double recompute_cost_ratio() const { return keep_all_cost_us > 0 ? cost_us / keep_all_cost_us : 1.0; }
};

// Live bytes during each node of the plan's order (externals, workspace and both operands and results of the node included):
// the curve the viewer draws. Its maximum is lower_bound_bytes.
std::vector<std::int64_t> live_bytes(const Plan& plan);

}  // namespace tapedeck
