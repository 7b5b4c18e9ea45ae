// What a replay would do, by the costs of the model: the executor's rules (capture/replay/run_segments.cpp) on a clock of its
// own. It decides nothing at random and looks at no machine, so equal segments give equal answers.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/segments/simulated_schedule.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

struct SimulatedMachine {
  std::int32_t threads = 1;
  double dispatch_us = 0;
};

struct SimulatedRun {
  double makespan_us = 0;
  // Moments are numbered in the order in which they happen, so that "ended before the other began" is a comparison of integers.
  std::vector<std::int32_t> began, ended;  // by segment
  std::vector<bool> crowded;               // by node: all threads had segments to run for most of its time
};

// A thread runs a segment's nodes in order; then the first segment this set free, else the one that has been free with the
// lowest number. Threads with nothing to run help with kernels of `most_threads` (by node) above one, at less than full gain.
// `slices`: gets all that the threads did, in the order of the ends. O(nodes x threads + edges log segments).
SimulatedRun simulate(const std::vector<Segment>& segments, const std::vector<double>& node_cost,
                      const std::vector<std::int32_t>& most_threads, const SimulatedMachine& machine,
                      std::vector<SimulatedSlice>* slices = nullptr);

// By node: how many threads its kernel is worth, at most `threads`. A kernel is split if each part is worth it.
std::vector<std::int32_t> most_threads_of(const Graph& graph, const std::vector<double>& node_cost, std::int32_t threads);

}  // namespace tapedeck
