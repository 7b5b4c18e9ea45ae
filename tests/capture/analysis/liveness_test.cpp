// Tests the liveness analysis against brute force: for every node and every value, a loop over all later nodes asks whether
// one of them reads the value.
#include <tapedeck/tests/capture/planner_graphs.h>

#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/capture/planner/planner.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tapedeck {
namespace {

TEST(Liveness, ReadersMatchBruteForce) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Graph graph = test::RandomProgram(seed).graph();
    const Readers readers(graph);
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      std::set<NodeId> wanted;
      for (NodeId n = 0; n < graph.node_count(); ++n)
        for (ValueId operand : graph.inputs(graph.nodes[n]))
          if (operand == v) wanted.insert(n);
      const auto got = readers.of(v);
      ASSERT_TRUE(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()))
          << "seed " << seed << " %" << graph.value_name(v);
      EXPECT_EQ(readers.last(v), wanted.empty() ? kNone : *wanted.rbegin());
    }
  }
}

TEST(Liveness, SumsOfIntervals) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const NodeId n = 1 + static_cast<NodeId>(random() % 30);
    std::vector<Interval> intervals;
    for (int i = 0; i < 20; ++i) {
      const auto birth = static_cast<NodeId>(random() % static_cast<unsigned>(n));
      intervals.push_back({static_cast<std::int64_t>(random() % 1000), birth,
                           birth + static_cast<NodeId>(random() % static_cast<unsigned>(n - birth))});
    }
    const auto sums = sum_alive(intervals, n);
    for (NodeId at = 0; at < n; ++at) {
      std::int64_t wanted = 0;
      for (const Interval& i : intervals) wanted += i.birth <= at && at <= i.death ? i.bytes : 0;
      ASSERT_EQ(sums[at], wanted);
    }
  }
}

// A value's bytes must stay while a later node reads the value, a window on it, or a result computed in its bytes. This
// function follows every chain of such values to its end, one value at a time.
bool needed_later(const Plan& plan, ValueId v, NodeId at) {
  for (NodeId n = at; n < plan.graph.node_count(); ++n)
    for (ValueId operand : plan.graph.inputs(plan.graph.nodes[n]))
      if (operand == v) return true;
  for (ValueId w = v + 1; w < plan.graph.value_count(); ++w) {
    const Placement& p = plan.values[w];
    const bool shares = (p.reason == Reason::alias || p.reason == Reason::in_place) && p.other == v;
    if (shares && (plan.graph.values[w].node >= at || needed_later(plan, w, at))) return true;
  }
  return false;
}

TEST(Liveness, LiveBytesMatchBruteForce) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    PlanOptions options;
    options.budget_percent = 70;
    const Plan plan = make_plan(test::RandomProgram(seed, 25).graph(), options);
    const auto live = live_bytes(plan);
    for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
      std::int64_t wanted = plan.external_bytes + plan.workspace[n].bytes;
      for (ValueId v = 0; v < plan.graph.value_count(); ++v) {
        const Placement& p = plan.values[v];
        const bool own = p.where == Where::arena && p.reason != Reason::alias && p.reason != Reason::in_place;
        const NodeId maker = plan.graph.values[v].node;
        if (own && maker <= n && (maker == n || needed_later(plan, v, n))) wanted += plan.graph.values[v].type.bytes();
      }
      ASSERT_EQ(live[n], wanted) << "seed " << seed << " at `" << plan.graph.node_text(n) << "`\n" << print(plan.graph);
    }
  }
}

}  // namespace
}  // namespace tapedeck
