// Timelines for tests: one measured in a real replay, one made up in the order of the plan.
#pragma once

#include <tapedeck/capture/cost/timeline.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/executor.h>

#include <algorithm>

namespace tapedeck::test {

// The timeline of the second run with default values, when caches are warm.
inline Timeline replay_timeline(const Plan& plan, int threads) {
  Executor executor(plan, {.threads = threads});
  const Graph& g = plan.graph;
  for (ValueId v = 0; v < g.n_inputs; ++v) executor.set_input(v, default_value(g.values[v].type, 1, g.value_name(v)));
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v)
    executor.set_state(g.value_name(v), default_value(g.values[v].type, 2, g.value_name(v)));
  Timeline timeline;
  executor.run();
  executor.run(&timeline);
  return timeline;
}

// Each node takes seven nanoseconds, one after the other, with `gap` nanoseconds between two nodes.
inline Timeline serial_timeline(const Plan& plan, int gap = 3) {
  Timeline t;
  std::int64_t now = 0;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (NodeId n : plan.segments[s].nodes) {
      t.slices.push_back({n, static_cast<std::int32_t>(s), 0, 0, 0});
    }
  std::sort(t.slices.begin(), t.slices.end(), [](const Slice& a, const Slice& b) { return a.node < b.node; });
  for (Slice& s : t.slices) {
    s.start_ns = now;
    s.end_ns = now + 7;
    now += 7 + gap;
  }
  t.run_ns = now;
  return t;
}

}  // namespace tapedeck::test
