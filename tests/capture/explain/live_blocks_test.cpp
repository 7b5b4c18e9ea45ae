// Tests the blocks that were alive during a run, against the plan's live bytes and against a slow search for overlaps.
#include <tapedeck/capture/explain/live_blocks.h>

#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/timelines.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tapedeck {
namespace {

// Plays the events in order. Each block begins once, ends once, and never overlaps a block that is alive.
void expect_no_overlap(const Plan& plan, const LiveBlocks& live) {
  std::set<std::int32_t> alive, done;
  std::int64_t last = 0;
  for (const LiveEvent& e : live.events) {
    EXPECT_GE(e.at_ns, last);
    last = e.at_ns;
    const LiveBlock& b = live.blocks[e.block];
    if (!e.begins) {
      EXPECT_EQ(alive.erase(e.block), 1u);
      done.insert(e.block);
      continue;
    }
    EXPECT_GT(b.bytes, 0);
    EXPECT_GE(b.offset, 0);
    EXPECT_LE(b.offset + b.bytes, plan.arena_bytes);
    for (std::int32_t other : alive) {
      const LiveBlock& o = live.blocks[other];
      EXPECT_TRUE(o.offset + o.bytes <= b.offset || b.offset + b.bytes <= o.offset) << "blocks " << other << " and " << e.block;
    }
    EXPECT_TRUE(alive.insert(e.block).second);
  }
  EXPECT_TRUE(alive.empty());
  EXPECT_EQ(done.size(), live.blocks.size());
}

TEST(LiveBlocks, OneAfterTheOtherTheHighestIsThePlansLowerBound) {
  for (unsigned seed = 0; seed < test::seeds(300); ++seed) {
    const Graph graph = test::RandomProgram(seed).graph();
    for (const double percent : {-1.0, 80.0}) {
      const Plan plan = make_plan(graph, {.budget_percent = percent, .find_floor = false});
      if (!plan.feasible) continue;
      SCOPED_TRACE(seed);
      for (const int gap : {0, 3}) {
        const LiveBlocks live = live_blocks(plan, test::serial_timeline(plan, gap));
        expect_no_overlap(plan, live);
        EXPECT_EQ(live_peak(plan, live), plan.lower_bound_bytes);
      }
    }
  }
}

TEST(LiveBlocks, ARealRunHoldsWhatThePlanSays) {
  const Plan plan = make_plan(sample_graph(), {.budget_percent = 90});
  ASSERT_TRUE(plan.feasible) << plan.infeasible_reason;
  const LiveBlocks serial = live_blocks(plan, test::replay_timeline(plan, 1));
  expect_no_overlap(plan, serial);
  EXPECT_EQ(live_peak(plan, serial), plan.lower_bound_bytes);
  for (int run = 0; run < 20; ++run) {
    const LiveBlocks parallel = live_blocks(plan, test::replay_timeline(plan, 2));
    expect_no_overlap(plan, parallel);
    EXPECT_LE(live_peak(plan, parallel), plan.peak_bytes);
  }
}

TEST(LiveBlocks, NodesThatDidNotRunHoldNothing) {
  const Plan plan = make_plan(sample_graph());
  Timeline half = test::serial_timeline(plan);
  const NodeId middle = plan.graph.node_count() / 2;
  for (Slice& s : half.slices)
    if (s.node > middle) s = Slice{};
  const LiveBlocks live = live_blocks(plan, half);
  EXPECT_FALSE(live.blocks.empty());
  for (const LiveBlock& b : live.blocks) EXPECT_LE(std::max(b.first, b.last), middle);
  expect_no_overlap(plan, live);
  EXPECT_TRUE(live_blocks(plan, Timeline{}).blocks.empty());
}

TEST(LiveBlocks, WhatWasWrittenBeforeTheRunIsHeldFromItsStart) {
  const Plan plan = make_plan(test::chain(4, 1000));
  Timeline later = test::serial_timeline(plan);
  for (Slice& s : later.slices)
    if (s.node < 4) s = Slice{};
  const LiveBlocks live = live_blocks(plan, later);
  EXPECT_EQ(std::count_if(live.blocks.begin(), live.blocks.end(),
                          [](const LiveBlock& b) { return b.first == kNone && b.start_ns == 0; }),
            4);
}

}  // namespace
}  // namespace tapedeck
