// Tests which value owns the bytes that a value lies in, against the checker's own function and against a walk from each
// value to the next.
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <tapedeck/capture/check/checks.h>
#include <tapedeck/capture/plan/byte_owners.h>
#include <tapedeck/capture/planner/planner.h>

#include <gtest/gtest.h>

#include <random>

namespace tapedeck {
namespace {

ValueId step_by_step(const Plan& plan, ValueId v) {
  for (;;) {
    const Placement& p = plan.values[v];
    if (p.reason != Reason::alias && p.reason != Reason::part && p.reason != Reason::in_place) return v;
    v = p.other;
  }
}

TEST(ByteOwners, AreTheCheckersAndHoldersAreTheEndOfTheChain) {
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const Plan plan = make_plan(seed % 2 ? test::RandomProgram(seed).graph() : test::RandomGraph(seed).make(40));
    EXPECT_EQ(byte_owners(plan), bytes_owner(plan));
    const std::vector<ValueId> holder = byte_holders(plan);
    for (ValueId v = 0; v < plan.graph.value_count(); ++v)
      EXPECT_EQ(holder[v], step_by_step(plan, v)) << "%" << plan.graph.value_name(v);
  }
}

// A plan from a file may contain any numbers. The functions must still return, with values in range.
TEST(ByteOwners, PlansThatMakeNoSense) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    Plan plan;
    plan.values.resize(1 + random() % 12);
    const auto n = static_cast<int>(plan.values.size());
    for (Placement& p : plan.values) {
      constexpr Reason reasons[] = {Reason::alias, Reason::part, Reason::in_place, Reason::temporary};
      p.reason = reasons[random() % 4];
      p.other = static_cast<ValueId>(random() % static_cast<unsigned>(n + 4)) - 2;
    }
    for (const std::vector<ValueId>& found : {byte_owners(plan), byte_holders(plan)})
      for (const ValueId v : found) EXPECT_TRUE(v >= 0 && v < n);
  }
}

}  // namespace
}  // namespace tapedeck
