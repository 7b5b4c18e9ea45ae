// Tests the values that share bytes: who belongs to a chain, in which order, and the sentences; compared with a slow search.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/plan/byte_chains.h>

#include <gtest/gtest.h>

#include <set>

namespace tapedeck::viewer {
namespace {

TEST(ByteChains, HaveTheMembersOfASlowSearch) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const MadePlan made = make_random_plan(seed, 50);
    const PlanModel model(std::make_shared<const Plan>(made.plan), made.curve);
    int chains = 0;
    for (ValueId v = 0; v < made.plan.graph.value_count(); ++v) {
      std::set<ValueId> expected, found;
      for (ValueId u = 0; u < made.plan.graph.value_count(); ++u)
        if (made.holder[static_cast<std::size_t>(u)] == made.holder[static_cast<std::size_t>(v)]) expected.insert(u);
      const std::vector<ByteChainLink> chain = byte_chain(model, v);
      for (const ByteChainLink& link : chain) found.insert(link.value);
      if (expected.size() == 1) expected.clear();
      EXPECT_EQ(found, expected) << "value " << v;
      chains += !chain.empty();
      if (chain.empty()) continue;
      EXPECT_EQ(chain.front().from, kNone);
      for (std::size_t i = 1; i < chain.size(); ++i) EXPECT_NE(chain[i].from, kNone);
    }
    EXPECT_GT(chains, 0);
  }
}

TEST(ByteChains, SayWhoTookOverWhoseBytes) {
  const Graph graph = parse(
      "graph g(%x: f32[64,64]) state(%w: f32[64,64]) {\n  %a: f32[64,64] = matmul(%x, %w)\n  %b: f32[64,64] = relu(%a)\n"
      "  %c: f32[64,64] = exp(%b)\n  %y: f32[64,64] = matmul(%c, %w)\n  return %y\n}\n",
      "test");
  const PlanModel model(std::make_shared<const Plan>(make_plan(graph, {})), {});
  const auto value = [&](const std::string& name) {
    for (ValueId v = 0; v < model.graph().value_count(); ++v)
      if (model.graph().value_name(v) == name) return v;
    return kNone;
  };
  const std::vector<ByteChainLink> chain = byte_chain(model, value("b"));
  ASSERT_EQ(chain.size(), 3u);
  EXPECT_EQ(chain[0].sentence, "%a has these bytes first");
  EXPECT_EQ(chain[1].sentence, "%b is computed in the bytes of %a, which nobody reads any more");
  EXPECT_EQ(chain[2].sentence, "%c is computed in the bytes of %b, which nobody reads any more");
  EXPECT_TRUE(byte_chain(model, value("y")).empty());
  EXPECT_TRUE(byte_chain(model, kNone).empty());
}

// No plan of ours has a cycle. A file may say anything, and the chain must still have an end.
TEST(ByteChains, OfAFaultyPlanEnd) {
  const MadePlan made = make_random_plan(5, 30);
  Plan faulty = made.plan;
  const auto in_bytes_of = [&](ValueId v, ValueId other) {
    faulty.values[static_cast<std::size_t>(v)].reason = Reason::in_place;
    faulty.values[static_cast<std::size_t>(v)].other = other;
  };
  const ValueId a = 3, b = 4, c = 5, outside = 6, itself = 7;
  in_bytes_of(a, c), in_bytes_of(b, a), in_bytes_of(c, b), in_bytes_of(outside, a), in_bytes_of(itself, itself);
  const PlanModel model(std::make_shared<const Plan>(faulty), made.curve);
  const auto all = static_cast<std::size_t>(faulty.graph.value_count());
  for (ValueId v = 0; v < faulty.graph.value_count(); ++v) EXPECT_LE(byte_chain(model, v).size(), all) << "value " << v;
  EXPECT_TRUE(byte_chain(model, itself).empty());
}

// The place of a window lies inside the rectangle of the value that it looks at.
TEST(ByteChains, AWindowLiesInsideItsValue) {
  const MadePlan made = make_random_plan(3, 80);
  const PlanModel model(std::make_shared<const Plan>(made.plan), made.curve);
  int windows = 0;
  for (ValueId v = 0; v < made.plan.graph.value_count(); ++v) {
    const PlanRect place = place_in_plan(model, v);
    if (place.bytes == 0) continue;
    const PlanRect rect = model.rects_of(v).front();
    EXPECT_GE(place.begin, rect.begin);
    EXPECT_LE(place.end, rect.end);
    EXPECT_LT(place.begin, place.end);
    EXPECT_GE(place.address, rect.address);
    EXPECT_LE(place.address + place.bytes, rect.address + rect.bytes);
    windows += rect.value != v;
  }
  EXPECT_GT(windows, 0);
}

}  // namespace
}  // namespace tapedeck::viewer
