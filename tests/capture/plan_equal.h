// Compares two plans field by field, and the plans of their regions. It leaves out the graph and solve_ms. The comparison is
// written by hand so that it shares no code with the functions that store plans.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tapedeck {

inline bool same_placement(const Placement& a, const Placement& b) {
  return a.where == b.where && a.reason == b.reason && a.slot == b.slot && a.offset == b.offset && a.other == b.other &&
         a.reader == b.reader && a.birth == b.birth && a.death == b.death && a.dense == b.dense &&
         std::equal(a.strides, a.strides + kMaxRank, b.strides);
}

inline bool same_segment(const Segment& a, const Segment& b) {
  return a.nodes == b.nodes && a.cost_us == b.cost_us && a.successors == b.successors && a.n_predecessors == b.n_predecessors &&
         a.end == b.end;
}

inline bool same_rule(const SegmentRule& a, const SegmentRule& b) {
  return a.shape == b.shape && a.placement == b.placement && a.dispatch_us == b.dispatch_us && a.least_us == b.least_us &&
         a.most_us == b.most_us && a.grain_us == b.grain_us && a.split_phases == b.split_phases && a.serial_us == b.serial_us &&
         a.critical_path_us == b.critical_path_us && a.makespan_us == b.makespan_us &&
         a.tight_makespan_us == b.tight_makespan_us && a.tight_peak_bytes == b.tight_peak_bytes;
}

inline bool same_decision(const Decision& a, const Decision& b) {
  return a.value == b.value && a.bytes == b.bytes && a.span == b.span && a.cost_us == b.cost_us && a.clones == b.clones &&
         a.live_peak_bytes == b.live_peak_bytes && a.reason == b.reason;
}

inline void expect_same_plan(const Plan& a, const Plan& b) {
  EXPECT_TRUE(std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same_placement));
  EXPECT_TRUE(std::equal(a.workspace.begin(), a.workspace.end(), b.workspace.begin(), b.workspace.end(),
                         [](const Scratch& x, const Scratch& y) { return x.offset == y.offset && x.bytes == y.bytes; }));
  EXPECT_TRUE(std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(), same_segment));
  EXPECT_TRUE(same_rule(a.segment_rule, b.segment_rule));
  EXPECT_EQ(a.intra_op, b.intra_op);
  EXPECT_EQ(a.threads, b.threads);
  EXPECT_EQ(a.costs, b.costs);
  EXPECT_EQ(a.measured_nodes, b.measured_nodes);
  EXPECT_EQ(a.reuse_edges, b.reuse_edges);
  EXPECT_EQ(a.output_slots, b.output_slots);
  EXPECT_TRUE(std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), b.decisions.end(), same_decision));
  EXPECT_EQ(a.unchanged_state, b.unchanged_state);
  EXPECT_EQ(a.feasible, b.feasible);
  EXPECT_EQ(a.infeasible_reason, b.infeasible_reason);
  EXPECT_EQ(a.level, b.level);
  EXPECT_TRUE(a.asked == b.asked);
  EXPECT_EQ(a.strategy, b.strategy);
  EXPECT_EQ(a.alignment, b.alignment);
  EXPECT_EQ(a.budget_bytes, b.budget_bytes);
  EXPECT_EQ(a.arena_bytes, b.arena_bytes);
  EXPECT_EQ(a.chunk_bytes, b.chunk_bytes);
  EXPECT_EQ(a.chunks, b.chunks);
  EXPECT_EQ(a.external_bytes, b.external_bytes);
  EXPECT_EQ(a.peak_bytes, b.peak_bytes);
  EXPECT_EQ(a.lower_bound_bytes, b.lower_bound_bytes);
  EXPECT_EQ(a.floor_bytes, b.floor_bytes);
  EXPECT_EQ(a.keep_all_peak_bytes, b.keep_all_peak_bytes);
  EXPECT_EQ(a.cost_us, b.cost_us);
  EXPECT_EQ(a.keep_all_cost_us, b.keep_all_cost_us);
  EXPECT_EQ(a.cost_lower_bound_us, b.cost_lower_bound_us);
  EXPECT_EQ(a.bound_from, b.bound_from);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.recomputed_nodes, b.recomputed_nodes);
  ASSERT_EQ(a.region_plans.size(), b.region_plans.size());
  for (std::size_t r = 0; r < a.region_plans.size(); ++r) {
    ASSERT_EQ(a.region_plans[r] == nullptr, b.region_plans[r] == nullptr) << "region " << r;
    if (a.region_plans[r]) expect_same_plan(*a.region_plans[r], *b.region_plans[r]);
  }
}

}  // namespace tapedeck
