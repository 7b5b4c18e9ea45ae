// Explains the peak of a plan and the use of its bytes: as plain data, and the same as text.
//
// explain_peak looks at the node where the most bytes are alive. For every value alive there it names the node that makes it,
// its next reader, and the change that would lower the peak: recomputing it (the nodes to run again, their cost, the peak that
// would be left), or computing it in place. If no change helps, it says why. Nodes whose own operands, results and workspace
// reach the lower bound *bind*: no order and no recomputation of other nodes gets below them.
#pragma once

#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct PeakTenant {
  ValueId value = kNone;   // kNone: workspace
  std::string name, type;  // "%h", "f32[64,784]"; workspace has no type
  MemoryRole role = MemoryRole::temporary;
  std::string reason;  // as reason_name(); "workspace"
  std::int64_t bytes = 0, offset = 0;
  NodeId first = kNone, last = kNone;
  std::string maker, made_at, module;  // the node, its call site and module path; empty where there is none
  std::string reader, read_at;         // the next reader after the peak (the peak's own node, if it reads it); empty: no reader
  bool used_at_peak = false;           // the node of the peak reads or makes it, so it has to be alive
  // Recomputing: making the value again for that reader instead of keeping it.
  bool recomputable = false;
  std::vector<NodeId> rerun;    // the nodes to run again, in order: where the peak is then lowest, there where they cost least
  NodeId rerun_before = kNone;  // just before this node: that reader, or earlier, while what they need is there
  double recompute_us = 0;
  std::int64_t peak_after =
      -1;  // most bytes alive in the plan's order then, what is made on the way counted (capture/explain/recompute_cost.h)
  bool order_helps = false;  // its only reader has all it needs before the peak
  std::string advice;        // one sentence
};

struct BindingNode {
  NodeId node = kNone;
  std::string text, site;
  std::int64_t own_bytes =
      0;  // external bytes + its operands, results and workspace in the arena. Parts count without what they are joined
          // to, joins without operands that may lie in them, and results not at all where their op may work in place
  bool binds = false;  // own_bytes is the lower bound: no change that keeps this node gets below it
};

struct PeakExplanation {
  NodeId node = kNone;  // the first of the nodes with the most live bytes; kNone: the graph has no nodes
  std::string text, site, phase;
  std::int32_t nodes_at_peak = 0;  // nodes with as many live bytes
  std::int64_t live_bytes = 0;     // there; the plan's lower bound
  std::int64_t external_bytes = 0, arena_live_bytes = 0, arena_bytes = 0, peak_bytes = 0;
  std::vector<PeakTenant> alive;     // in the arena, largest first
  std::vector<BindingNode> binding;  // the five with the most of their own
  // The peak over the lower bound.
  std::int64_t gap_bytes = 0;
  std::int64_t alignment_bytes = 0;  // of it at most: rounding up what is alive at the peak
  std::int64_t apart_bytes = 0;      // of it: what is placed apart for several threads takes so much more than placed tightly
  std::string top, top_text;         // the value that ends highest, and the node where it is made
  std::string gap_reason;            // one sentence: the proof that there is, or that there is none
};

struct MemoryTotal {
  std::string name;
  std::int64_t count = 0;       // number of values or workspaces
  std::int64_t bytes = 0;       // of all of them
  std::int64_t peak_bytes = 0;  // of those alive at the peak
};

struct SharingUse {  // what a sharing rule does in this plan
  std::string rule;  // as in capture/plan/sharing.h
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // of values that need no bytes of their own by it
};

struct MemoryExplanation {
  std::int64_t peak_bytes = 0, lower_bound_bytes = 0, external_bytes = 0, arena_bytes = 0;
  std::int64_t chunk_bytes = 0;  // as in Plan
  std::vector<MemoryTotal>
      chunks;  // of the arena, largest first: buffers that lie there, the chunk's own bytes, bytes alive at the peak
  std::string order;
  std::int64_t alignment = 0, alignment_bytes = 0, gap_bytes = 0;
  std::int64_t apart_bytes = 0;     // of the gap: as in PeakExplanation
  std::int32_t threads = 1;         // as in Plan
  std::int64_t unshared_bytes = 0;  // external + every value and workspace with bytes of its own
  std::int32_t arena_values = 0, arena_buffers = 0;
  std::vector<MemoryTotal> roles;    // those that occur, in the order of MemoryRole
  std::vector<MemoryTotal> reasons;  // likewise, of all values with bytes, in the order of Reason
  std::vector<MemoryTotal>
      unruled;  // what no rule shares, where there is some: "workspace"; of it "loops" (nodes with regions) and of these "loop
                // tapes" (loop_grad's); "loop residuals" (values that loops keep for backward)
  std::vector<SharingUse> sharing;  // of all rules but add_to: a value that add_to shares is no value of the plan any more
                                    // (sharing_bounds.h says what it earns)
};

// `node_us`: cost of every node of plan.graph (cost_nodes), or empty: costs are 0. REQUIRES: check_plan(plan) finds nothing.
// Thread safe. O(values + nodes) for each of the largest 32 alive at the peak, some times.
PeakExplanation explain_peak(const Plan& plan, const std::vector<double>& node_us);
MemoryExplanation explain_memory(const Plan& plan);

std::string to_text(const PeakExplanation& e);
std::string to_text(const MemoryExplanation& e);

}  // namespace TAPEDECK_API
