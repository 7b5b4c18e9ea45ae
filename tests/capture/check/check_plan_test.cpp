// Tests that the checker rejects broken plans: each test spoils a good plan in one way. plan_test.cpp checks that the
// checker accepts hundreds of good plans.
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/engine/value_named.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

namespace tapedeck {
namespace {

Plan good_plan() {
  PlanOptions options;
  options.segment_us = 0;  // every node is its own segment, so that only edges order the nodes
  return make_plan(parse(test::kStepWithState, "good"), options);
}

void expect_rejected(const std::string& words, const std::function<void(Plan&)>& spoil) {
  Plan plan = good_plan();
  ASSERT_TRUE(check_plan(plan).empty()) << check_plan(plan)[0] << "\n" << print(plan.graph);
  spoil(plan);
  const auto violations = check_plan(plan);
  ASSERT_FALSE(violations.empty()) << "not noticed: " << words;
  bool said = false;
  for (const std::string& violation : violations) said = said || violation.find(words) != std::string::npos;
  EXPECT_TRUE(said) << "wanted: " << words << "\ngot: " << violations[0];
}

TEST(PlanCheck, RejectsWrongSums) {
  expect_rejected("peak_bytes", [](Plan& p) { ++p.peak_bytes; });
  expect_rejected("external_bytes", [](Plan& p) { --p.external_bytes, --p.peak_bytes; });
  expect_rejected("over the budget", [](Plan& p) { p.budget_bytes = p.peak_bytes - 1; });
  expect_rejected("lower bound", [](Plan& p) { p.lower_bound_bytes = p.peak_bytes + 1; });
  expect_rejected("floor", [](Plan& p) { p.floor_bytes = p.peak_bytes + 1; });
  expect_rejected("alignment", [](Plan& p) { p.alignment = 48; });
}

TEST(PlanCheck, RejectsFiguresThatTheGraphDoesNotBear) {
  expect_rejected("alive at once", [](Plan& p) { p.lower_bound_bytes = 1; });
  expect_rejected("alive at once", [](Plan& p) { --p.lower_bound_bytes; });
  expect_rejected("negative", [](Plan& p) { p.floor_bytes = -1; });
  expect_rejected("after its last use", [](Plan& p) {
    for (Placement& v : p.values)
      if (v.where == Where::arena) v.death = p.graph.node_count() - 1;
  });
}

TEST(PlanCheck, RejectsMissingParts) {
  expect_rejected("one placement for each value", [](Plan& p) { p.values.pop_back(); });
  expect_rejected("one workspace for each node", [](Plan& p) { p.workspace.pop_back(); });
  expect_rejected("every node once", [](Plan& p) {
    p.segments.pop_back();
    for (Segment& s : p.segments) std::erase(s.successors, static_cast<std::int32_t>(p.segments.size()));
  });
  expect_rejected("lies nowhere", [](Plan& p) { p.values[testing::value_named(p.graph, "a")].where = Where::nowhere; });
  expect_rejected("does not exist", [](Plan& p) { p.values[testing::value_named(p.graph, "w")].slot = 9; });
}

TEST(PlanCheck, RejectsValuesOutsideTheirBuffers) {
  expect_rejected("not inside the arena",
                  [](Plan& p) { p.values[testing::value_named(p.graph, "o")].offset = p.arena_bytes - 8; });
  expect_rejected("not inside the arena", [](Plan& p) { p.values[testing::value_named(p.graph, "o")].offset = -64; });
  expect_rejected("not inside the arena", [](Plan& p) {
    p.values[testing::value_named(p.graph, "o")].offset = std::numeric_limits<std::int64_t>::max();
  });
  expect_rejected("no multiple", [](Plan& p) {
    p.values[testing::value_named(p.graph, "o")].offset += 4;
    p.arena_bytes += 64;
    p.peak_bytes += 64;
  });
  expect_rejected("workspace", [](Plan& p) { p.workspace[0] = {p.arena_bytes, 64}; });
}

TEST(PlanCheck, RejectsOverlaps) {
  expect_rejected("share bytes", [](Plan& p) {
    p.values[testing::value_named(p.graph, "p")].offset = p.values[testing::value_named(p.graph, "k")].offset;
  });
  expect_rejected("share bytes", [](Plan& p) {
    p.workspace[testing::value_named(p.graph, "o") > 0 ? p.graph.values[testing::value_named(p.graph, "p")].node : 0] = {0, 64};
  });
}

TEST(PlanCheck, RejectsWritesToInputsConstantsAndForeignState) {
  expect_rejected("wrong buffer", [](Plan& p) {
    auto& a = p.values[testing::value_named(p.graph, "a")];
    a.where = Where::input;
    a.slot = 0;
    a.offset = 0;
  });
  expect_rejected("wrong buffer", [](Plan& p) {
    auto& a = p.values[testing::value_named(p.graph, "a")];
    a.where = Where::state;
    a.slot = 0;
    a.offset = 0;
  });
  expect_rejected("wrong buffer", [](Plan& p) {
    auto& a = p.values[testing::value_named(p.graph, "a")];
    a.where = Where::constant;
    a.slot = 0;
    a.offset = 0;
  });
  expect_rejected("is not made in the state", [](Plan& p) {
    auto& w = p.values[testing::value_named(p.graph, "w2")];
    w.where = Where::arena;
    w.slot = kNone;
    w.offset = 0;
  });
}

TEST(PlanCheck, RejectsUpdatesBeforeTheLastReader) {
  // Without these edges the optimizer may overwrite the weights before `mul` has read the old ones.
  expect_rejected("may be overwritten", [](Plan& p) {
    const NodeId writer = p.graph.values[testing::value_named(p.graph, "w2")].node;
    for (Segment& s : p.segments) std::erase(s.successors, writer);
    for (Segment& s : p.segments) s.n_predecessors = 0;
    for (const Segment& s : p.segments)
      for (std::int32_t t : s.successors) ++p.segments[t].n_predecessors;
    p.reuse_edges.clear();
  });
}

TEST(PlanCheck, RejectsFalseWindows) {
  expect_rejected("wrong place", [](Plan& p) { p.values[testing::value_named(p.graph, "t")].offset += 4; });
  expect_rejected("wrong place", [](Plan& p) {
    std::swap(p.values[testing::value_named(p.graph, "t")].strides[0], p.values[testing::value_named(p.graph, "t")].strides[1]);
  });
  expect_rejected("no view of",
                  [](Plan& p) { p.values[testing::value_named(p.graph, "t")].other = testing::value_named(p.graph, "k"); });
  expect_rejected("no view of", [](Plan& p) {
    p.values[testing::value_named(p.graph, "p")].reason = Reason::alias, p.values[testing::value_named(p.graph, "p")].other =
                                                                             testing::value_named(p.graph, "t");
  });
  expect_rejected("no earlier value",
                  [](Plan& p) { p.values[testing::value_named(p.graph, "t")].other = p.graph.value_count(); });
}

TEST(PlanCheck, RejectsFalseTakeovers) {
  expect_rejected("may not overwrite", [](Plan& p) {
    auto& v = p.values[testing::value_named(p.graph, "b")];
    v.other = testing::value_named(p.graph, "k");
    v.reason = Reason::in_place;
    v.offset = p.values[testing::value_named(p.graph, "k")].offset;
  });
  expect_rejected("not in the arena", [](Plan& p) {
    auto& v = p.values[testing::value_named(p.graph, "a")];
    v.reason = Reason::in_place;
    v.other = testing::value_named(p.graph, "x");
  });
}

TEST(PlanCheck, RejectsBadSegments) {
  expect_rejected("may run before", [](Plan& p) {
    for (Segment& s : p.segments) s.successors.clear(), s.n_predecessors = 0;
    p.reuse_edges.clear();
  });
  expect_rejected("wrong number", [](Plan& p) { ++p.segments[2].n_predecessors; });
  expect_rejected("later segments", [](Plan& p) { p.segments[3].successors = {1}; });
  expect_rejected("later segments", [](Plan& p) { p.segments[3].successors = {1000000}; });
  expect_rejected("not its own", [](Plan& p) { p.segments[1].nodes = p.segments[0].nodes; });
  expect_rejected("not ascending", [](Plan& p) { p.segments[1].nodes.push_back(-1); });
  expect_rejected("holds no nodes", [](Plan& p) { p.segments[1].nodes.clear(); });
  expect_rejected("intra_op", [](Plan& p) { p.intra_op.assign(1, true); });
  expect_rejected("reuse edge", [](Plan& p) { p.reuse_edges.push_back({5, 2}); });
}

TEST(PlanCheck, RejectsOutputsThatDoNotLast) {
  expect_rejected("do not last", [](Plan& p) {
    auto& q = p.values[testing::value_named(p.graph, "q")];
    q.where = Where::arena;
    q.slot = kNone;
    q.offset = 0;
  });
  expect_rejected("not returned", [](Plan& p) {
    auto& o = p.values[testing::value_named(p.graph, "o")];
    o.where = Where::output;
    o.slot = 0;
    o.offset = 0;
    p.output_slots[0] = p.graph.values[testing::value_named(p.graph, "o")].type;
    p.external_bytes += 492;
    p.peak_bytes += 492;
  });
}

TEST(PlanCheck, RejectsBrokenGraphs) {
  expect_rejected("", [](Plan& p) { p.graph.refs[0] = 1 << 30; });
  expect_rejected("", [](Plan& p) { p.graph.nodes[0].first_output = -5; });
  expect_rejected("", [](Plan& p) { p.graph.updates[0].state = 77; });
}

// Values, a chunk and an update are wrong, and the values alone fill the list.
TEST(PlanCheck, StopsAfterAHundredSentences) {
  std::string text = "graph g(%x: u8[64]) state(%w: u8[64]) {\n", all = "%x";
  for (int i = 0; i < 150; ++i) {
    const std::string name = "%a" + std::to_string(i);
    text += name + ": u8[64] = opaque(%x) {us=1.0}\n";
    all += ", " + name;
  }
  text += "%n: u8[64] = opaque(" + all + ") {us=1.0}\nreturn %x\nupdate %w = %n\n}";
  PlanOptions options;
  options.chunk_bytes = 64;
  Plan plan = make_plan(parse(text, "many"), options);
  ASSERT_EQ(check_plan(plan), std::vector<std::string>());
  for (Placement& v : plan.values)
    if (v.where == Where::arena) v.offset = -64;
  plan.chunks.back() += 64;
  plan.arena_bytes += 64;
  plan.peak_bytes += 64;
  const std::vector<std::string> found = check_plan(plan);
  ASSERT_EQ(found.size(), 100u);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], "%a" + std::to_string(i) + " is not inside the arena");
}

// Checking a plan is safe for any numbers that a hostile file may contain; the sanitizers watch this test.
TEST(PlanCheck, SurvivesRandomNumbers) {
  std::mt19937 random(11);
  const auto any = [&]() -> std::int64_t {
    constexpr std::int64_t odd[] = {
        0, -1, 1, 63, 1 << 20, -(1 << 20), std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()};
    return random() % 3 ? odd[random() % 8] : static_cast<std::int64_t>(random() % 40);
  };
  const auto wide = [&] {
    return random() % 4 ? any() : std::numeric_limits<std::int64_t>::max() - static_cast<std::int64_t>(random() % 100);
  };
  const Plan good = good_plan();
  for (int round = 0; round < 3000; ++round) {
    Plan p = good;
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
      Placement& v = p.values[random() % p.values.size()];
      Segment& s = p.segments[random() % p.segments.size()];
      switch (random() % 16) {
        case 0:
          v.offset = wide();
          break;
        case 1:
          v.slot = static_cast<std::int32_t>(any());
          break;
        case 2:
          v.other = static_cast<ValueId>(any());
          break;
        case 3:
          v.reason = static_cast<Reason>(random() % 256);
          break;
        case 4:
          v.where = static_cast<Where>(random() % 256);
          break;
        case 5:
          v.strides[random() % kMaxRank] = wide();
          v.dense = false;
          break;
        case 6:
          v.birth = static_cast<NodeId>(any());
          v.death = static_cast<NodeId>(any());
          break;
        case 7:
          s.nodes.push_back(static_cast<NodeId>(any()));
          break;
        case 8:
          s.nodes.resize(random() % 8);
          break;
        case 9:
          s.successors.push_back(static_cast<std::int32_t>(any()));
          break;
        case 10:
          p.workspace[random() % p.workspace.size()] = {wide(), wide()};
          break;
        case 11:
          p.reuse_edges.push_back({static_cast<NodeId>(any()), static_cast<NodeId>(any())});
          break;
        case 12:
          p.arena_bytes = wide();
          p.peak_bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(p.external_bytes) +
                                                   static_cast<std::uint64_t>(p.arena_bytes));
          break;
        case 13:
          p.graph.refs[random() % p.graph.refs.size()] = static_cast<ValueId>(any());
          break;
        case 14:
          p.output_slots.assign(random() % 3, Type{static_cast<DType>(random() % 256), Shape{4}});
          break;
        case 15:
          p.segments.resize(1 + random() % 12);
          break;
      }
    }
    check_plan(p);
    check_clones(p);
    p.values.resize(good.values.size());
    p.workspace.resize(good.workspace.size());
  }
}

// ---- check_clones: plans with recomputation ----

Plan plan_with_clones() {
  PlanOptions options;
  options.budget_percent = 50;
  return make_plan(test::chain(12, 1000), options);
}

NodeId first_clone(const Plan& plan) {
  NodeId n = 0;
  while (!plan.graph.nodes[n].origin.clone) ++n;
  return n;
}

TEST(CloneCheck, AcceptsAndRejects) {
  const Plan good = plan_with_clones();
  EXPECT_TRUE(check_clones(good).empty());
  const auto rejects = [&](const std::string& words, const std::function<void(Plan&)>& spoil) {
    Plan plan = good;
    spoil(plan);
    const auto violations = check_clones(plan);
    ASSERT_FALSE(violations.empty()) << "not noticed: " << words;
    EXPECT_NE(violations[0].find(words), std::string::npos) << violations[0];
  };
  rejects("no earlier node makes", [](Plan& p) { p.graph.nodes[first_clone(p)].origin.of = "nobody"; });
  rejects("no repetition", [](Plan& p) { p.graph.nodes[first_clone(p)].origin.of = "a7"; });
  rejects("no repetition", [](Plan& p) { --p.graph.nodes[first_clone(p)].n_inputs; });
  rejects("no repetition",
          [](Plan& p) { p.graph.values[p.graph.nodes[first_clone(p)].first_output].type.dtype = DType::boolean; });
  rejects("recomputed nodes", [](Plan& p) { ++p.recomputed_nodes; });
  rejects("nodes", [](Plan& p) { ++p.nodes; });
  rejects("comes from a clone", [](Plan& p) { p.graph.outputs[0] = p.graph.nodes[first_clone(p)].first_output; });
}

}  // namespace
}  // namespace tapedeck
