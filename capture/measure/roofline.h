// Compares the time of every node of a step with the least time that this machine could need for it.
//
//     bound of a node = the larger of   flops / peak of flops
//                                       bytes / rate of the level that holds all of these bytes
//
// The bytes are the operands read and the results written, each once. The level is the nearest one that is large enough, as if
// the operands lay there already. With several threads both rates are those of all threads together, so the bound holds for a
// kernel that no other kernel runs beside.
//
// The counts come from the op (counted_cost()), and are made smaller where the plan shows that less is moved: an operand that
// stands twice is read once, a view is no larger than the bytes that it looks at, and a join does not move parts that already
// lie in their places. A kernel that reads only a part of an operand, such as `embedding`, counts too much; such a node may be
// faster than its bound. A sum of bounds counts such a node by its measured time.
#pragma once

#include <tapedeck/capture/cost/machine_peaks.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

enum class BoundBy : std::uint8_t {
  nothing,  // the node moves no bytes and computes nothing: its bound is zero
  flops,
  bytes,
  regions,  // the sum of the bounds of the nodes inside
  unknown   // no bound: a loop whose number of passes is not known before the run, or a call of a function of the host
};

struct NodeBound {
  BoundBy by = BoundBy::nothing;
  double us = 0;          // 0 if `by` is nothing or unknown
  double flops = 0;       // of the node with its regions; 0 if `by` is unknown
  double bytes = 0;       // likewise
  std::size_t level = 0;  // that holds the bytes: index into ThreadPeaks::levels; of a node without regions
};

// The bound of a node of `graph`. The regions of a loop count once for each pass, and of the branches of a `cond` the one with
// the smaller bound. `plan` is the plan of the graph; it may be null. REQUIRES: the peaks have levels.
NodeBound bound_of(const Graph& graph, NodeId node, const ThreadPeaks& peaks, const Plan* plan = nullptr);

struct RooflineRow {
  NodeId node = kNone;   // of the planned graph
  std::string name, op;  // the name of the first result, without %
  std::string module, site;
  double us = 0;  // measured
  NodeBound bound;
  double lost_us = 0;  // measured time above the bound; of a node without a bound all of its time; negative below the bound
  double gflop_per_s = 0, gb_per_s = 0;
  double percent = 0;  // of the peak that binds; 0 without a bound
  double share = 0;    // of the measured time of all nodes, 0..1
};

// The sum over the nodes of one op.
struct RooflineOp {
  std::string op;
  std::int32_t nodes = 0;
  double us = 0, bound_us = 0, lost_us = 0, share = 0;
};

struct Roofline {
  ThreadPeaks peaks;
  std::vector<RooflineRow> rows;  // the most lost time first; nodes without a kernel call have none
  std::vector<RooflineOp> ops;    // likewise
  double step_us = 0;             // measured, of the step as a whole: the median
  double fastest_us = 0;          // of the fastest step
  double kernels_us = 0;          // the sum of the measured times of all nodes
  double bound_us = 0;            // the sum of the bounds; a node below its bound counts by its measured time
  double ratio = 0;               // of step_us to bound_us; 0 if that is 0
  double fastest_ratio = 0;       // likewise of fastest_us
  std::int32_t below_bound = 0;   // the number of nodes that were faster than their bound
  std::int32_t unbounded = 0;     // the number of nodes without a bound
  double unbounded_us = 0;        // their measured time
};

struct StepTimes {
  double median_us = 0, fastest_us = 0;
};

// `node_us` has the measured time of each node of the planned graph; a negative time means that the node has no kernel call.
// REQUIRES: one entry for each node, and the peaks have levels.
Roofline make_roofline(const Plan& plan, std::span<const double> node_us, const StepTimes& step, const ThreadPeaks& peaks);

}  // namespace TAPEDECK_API
