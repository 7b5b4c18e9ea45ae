// Random graphs with plans for them, and every value of a planned graph, for tests of replays.
#pragma once

#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tapedeck::test {

// Plans with many small segments for one to four threads. Half of the plans have a budget, so that more values share bytes.
inline Plan new_plan_of(const Graph& g, std::uint64_t seed, bool split_phases) {
  PlanOptions options;
  options.segment_us = 0.2;
  options.threads = 1 + static_cast<std::int32_t>(seed / 2 % 4);
  options.split_phases = split_phases;
  if (seed % 2 == 0) {
    options.strategy = Strategy::none;
    options.find_floor = false;
    return make_plan(g, options);
  }
  PlanSearch search(g, options);
  const Plan keep_all = search.plan(-1);
  return search.plan(std::max(search.floor(), keep_all.external_bytes + keep_all.arena_bytes / 2));
}

// The same plan, which is made once in a process: many tests replay the graph of a seed, and planning takes most of their time.
inline const Plan& plan_of(const Graph& g, std::uint64_t seed, bool split_phases = false) {
  static std::mutex mutex;
  static std::map<std::string, Plan> plans;
  PrintOptions all;
  all.max_inline_constant = std::numeric_limits<std::int64_t>::max();
  const std::string key = std::to_string(seed) + (split_phases ? " split " : " ") + print(g, all);
  const std::lock_guard lock(mutex);
  const auto it = plans.find(key);
  return it != plans.end() ? it->second : plans.emplace(key, new_plan_of(g, seed, split_phases)).first->second;
}

inline Graph graph_of(std::uint64_t seed) {
  if (seed % 3 == 0) return test::RandomProgram(static_cast<unsigned>(seed) + 1).graph();
  return test::RandomGraph(seed).make(5 + static_cast<int>(seed % 40));
}

// Every value of the planned graph, computed by eager code.
inline std::map<std::string, Tensor> all_values(const Graph& planned, const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& state) {
  Graph all = planned;
  all.outputs.clear();
  for (ValueId v = 0; v < planned.value_count(); ++v) all.outputs.push_back(v);
  all.output_names.assign(all.outputs.size(), {});
  all.updates.clear();
  const std::vector<Tensor> values = run_eagerly(all, inputs, state).outputs;
  std::map<std::string, Tensor> by_name;
  for (ValueId v = 0; v < planned.value_count(); ++v) by_name.emplace(planned.value_name(v), values[v]);
  return by_name;
}

}  // namespace tapedeck::test
