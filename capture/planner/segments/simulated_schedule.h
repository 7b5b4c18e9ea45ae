// The run of a plan as a replay would make it, by the costs of the model: what each thread does, and when. It follows the rules
// of the executor on a clock of its own (simulate_run.h), so equal plans and costs give equal schedules.
//
//     thread 0   | dispatch | %a ...... | dispatch | %c ...... |
//     thread 1   | dispatch | %b .... |  helps with %c     |
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A thread has a node, or the start of a segment, at hand from start_us to end_us. A node that costs nothing has none.
struct SimulatedSlice {
  NodeId node = kNone;           // kNone: the dispatch of the segment
  std::int32_t segment = kNone;  // kNone: the thread helps with the node, which another thread runs
  std::int32_t thread = 0;
  double start_us = 0, end_us = 0;
};

struct SimulatedSchedule {
  std::int32_t threads = 1;
  double makespan_us = 0;
  std::vector<SimulatedSlice> slices;  // in the order of their ends; those of one thread do not overlap
};

// On `threads` threads, which may be another number than the plan was cut for. `node_us`: by node, finite and >= 0. Where idle
// threads share several kernels, whole threads stand for the shares. O(nodes x threads + edges log segments).
SimulatedSchedule simulate_schedule(const Plan& plan, const std::vector<double>& node_us, std::int32_t threads);

}  // namespace TAPEDECK_API
