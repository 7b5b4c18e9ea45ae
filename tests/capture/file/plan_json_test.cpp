// Tests plans as JSON: every field is read back unchanged, and impossible numbers are refused.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/plan_json.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/requests/asked_options.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <limits>
#include <memory>
#include <random>

namespace tapedeck {
namespace {

// Fills a plan with random numbers of all sizes, limits included. The plan need not make sense; it only has to be read back
// unchanged.
class RandomPlan {
 public:
  explicit RandomPlan(unsigned seed) : random_(seed) {}

  // `depth` is the depth of nested regions.
  Plan make(int depth = 2) {
    Plan p;
    for (int n = below(5); n > 0; --n) p.values.push_back(placement());
    for (int n = below(5); n > 0; --n) p.workspace.push_back({wide(), wide()});
    for (int n = below(5); n > 0; --n)
      p.segments.push_back({{narrow(), narrow()}, real(), {narrow(), narrow()}, narrow(), static_cast<SegmentEnd>(below(7))});
    p.segment_rule = {text(), text(), real(), real(), real(), real(), below(2) == 1, real(), real(), real(), real(), wide()};
    for (int n = below(5); n > 0; --n) p.reuse_edges.push_back({narrow(), narrow()});
    for (int n = below(5); n > 0; --n) p.output_slots.push_back({static_cast<DType>(below(kDTypeCount)), {below(9), below(9)}});
    for (int n = below(5); n > 0; --n) p.decisions.push_back({text(), wide(), narrow(), real(), narrow(), wide(), text()});
    for (int n = below(5); n > 0; --n) p.intra_op.push_back(below(2) == 1);
    for (int n = below(5); n > 0; --n) p.chunks.push_back(wide());
    p.threads = narrow();
    p.costs = text();
    p.measured_nodes = narrow();
    p.feasible = below(2);
    p.infeasible_reason = text();
    p.level = static_cast<OptimizationLevel>(below(3));
    p.strategy = text();
    p.asked = {text(), below(2) == 1, {}, real(), real()};
    for (int n = below(3); n > 0; --n) p.asked.wishes.push_back({static_cast<WishKind>(below(2)), text()});
    for (std::int64_t* number : {&p.alignment, &p.budget_bytes, &p.arena_bytes, &p.chunk_bytes, &p.external_bytes,
                                 &p.peak_bytes, &p.lower_bound_bytes, &p.floor_bytes, &p.keep_all_peak_bytes})
      *number = wide();
    p.cost_us = real();
    p.keep_all_cost_us = real();
    p.cost_lower_bound_us = real();
    p.bound_from = text();
    p.nodes = narrow();
    p.recomputed_nodes = narrow();
    for (int n = depth > 0 ? below(4) : 0; n > 0; --n) {
      const bool shared = !p.region_plans.empty() && below(2) == 0;
      if (shared)
        p.region_plans.push_back(p.region_plans.back());
      else
        p.region_plans.push_back(below(4) > 0 ? std::make_shared<const Plan>(make(depth - 1)) : nullptr);
    }
    return p;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::int64_t wide() {
    using Limits = std::numeric_limits<std::int64_t>;
    const std::int64_t special[] = {0, -1, 1, 64, Limits::max(), Limits::min()};
    return below(2) ? special[below(6)] : static_cast<std::int64_t>(random_()) << below(32);
  }
  std::int32_t narrow() { return static_cast<std::int32_t>(wide()); }
  double real() {
    const double special[] = {0, 1.5, 0.1, 1e300, 5e-324, std::numeric_limits<double>::infinity()};
    return below(2) ? special[below(6)] : static_cast<double>(random_()) / 7.0;
  }
  std::string text() {
    const char* some[] = {"",
                          "none",
                          "a \"quoted\" \\ name",
                          "two\nlines\t\x01",
                          ("gr\xc3\xb6\xc3\x9f"
                           "er"),
                          "%w"};
    return some[below(6)];
  }
  Placement placement() {
    Placement p;
    p.where = static_cast<Where>(below(6));
    p.reason = static_cast<Reason>(below(12));
    p.offset = wide();
    for (std::int32_t* number : {&p.slot, &p.other, &p.reader, &p.birth, &p.death}) *number = narrow();
    p.dense = below(2);
    if (!p.dense)
      for (std::int64_t& stride : p.strides) stride = wide();
    return p;
  }

  std::mt19937 random_;
};

TEST(PlanJson, EveryFieldSurvives) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan = RandomPlan(seed).make();
    const std::string json = plan_to_json(plan);
    const Plan back = read_plan_json(json);
    expect_same_plan(plan, back);
    EXPECT_EQ(plan_to_json(back), json);
    if (HasFailure()) return;
  }
}

TEST(PlanJson, RealPlansComeBack) {
  for (const double percent : {100.0, 90.0, 80.0}) {
    const Plan plan = make_plan(sample_graph(), {.budget_percent = percent});
    expect_same_plan(plan, parse_plan(plan_to_json(plan), plan.graph));
  }
}

TEST(PlanJson, LooksAsDocumented) {
  Plan plan;
  plan.values.resize(2);
  plan.values[1].where = Where::arena;
  plan.values[1].offset = 256;
  plan.workspace.resize(1);
  plan.output_slots = {{DType::f32, {64, 10}}};
  plan.cost_us = 0.1;
  EXPECT_EQ(plan_to_json(plan),
            "{\"schema\":\"tapedeck.plan_data/1\",\"cost_us\":0.1,\"values\":[\n{},\n{\"where\":\"arena\",\"offset\":256}],"
            "\"workspace\":[\n{}],\"output_slots\":[[\"f32\",64,10]]}\n");
}

TEST(PlanJson, RefusesWhatIsNoPlan) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not JSON at byte"},
      {"[]", "an array where an object should be"},
      {"{}", "the schema is not tapedeck.plan_data/1"},
      {R"({"schema":"tapedeck.plan_data/2"})", "the schema is not"},
      {R"({"schema":1})", "an integer where a string should be"},
      {R"({"schema":"tapedeck.plan_data/1","nodes":2147483648})", "nodes: 2147483648 is out of range"},
      {R"({"schema":"tapedeck.plan_data/1","nodes":1.5})", "nodes: a real number where an integer"},
      {R"({"schema":"tapedeck.plan_data/1","feasible":1})", "feasible: an integer where a boolean"},
      {R"({"schema":"tapedeck.plan_data/1","cost_us":"much"})", "cost_us: a string where a number"},
      {R"({"schema":"tapedeck.plan_data/1","values":{}})", "values: an object where an array"},
      {R"({"schema":"tapedeck.plan_data/1","values":[{},{"where":"heap"}]})", "values: [1] where: \"heap\" is no place"},
      {R"({"schema":"tapedeck.plan_data/1","values":[{"reason":"?"}]})", "values: [0] reason: \"?\" is no reason"},
      {R"({"schema":"tapedeck.plan_data/1","level":"most"})", "level: \"most\" is no level of optimization"},
      {R"({"schema":"tapedeck.plan_data/1","level":2})", "level: an integer where a string"},
      {R"({"schema":"tapedeck.plan_data/1","asked":[]})", "asked: an array where an object"},
      {R"({"schema":"tapedeck.plan_data/1","asked":{"wishes":[{"kind":"want"}]}})", "\"want\" is no kind of wish"},
      {R"({"schema":"tapedeck.plan_data/1","asked":{"segment_us":"x"}})", "asked: segment_us: a string where a number"},
      {R"({"schema":"tapedeck.plan_data/1","values":[{"strides":[1]}]})", "strides: not 8 strides"},
      {R"({"schema":"tapedeck.plan_data/1","values":[{"strides":7}]})", "strides: not 8 strides"},
      {R"({"schema":"tapedeck.plan_data/1","output_slots":[[]]})", "output_slots: [0] not a type"},
      {R"({"schema":"tapedeck.plan_data/1","output_slots":[["f31"]]})", "\"f31\" is no dtype"},
      {R"({"schema":"tapedeck.plan_data/1","output_slots":[["f32",-1]]})", "a size is negative"},
      {R"({"schema":"tapedeck.plan_data/1","output_slots":[["f32",4294967296,4294967296]]})", "larger than 64 TiB"},
      {R"({"schema":"tapedeck.plan_data/1","nodes":1,"nodes":1})", "\"nodes\" appears twice"},
  };
  for (const auto& [json, reason] : cases) {
    const std::string message = message_of<InvalidGraphError>([&, text = json] { read_plan_json(text); });
    EXPECT_NE(message.find(reason), std::string::npos) << json << "\n  gives  " << message;
  }
}

// Files from before the key had been planned at the level of then, which was all.
TEST(PlanJson, TheLevelIsStoredUnlessItIsAll) {
  const Plan none = make_plan(sample_graph(), {.level = OptimizationLevel::none}), all = make_plan(sample_graph());
  EXPECT_NE(plan_to_json(none).find(R"("level":"none")"), std::string::npos);
  EXPECT_EQ(parse_plan(plan_to_json(none), none.graph).level, OptimizationLevel::none);
  EXPECT_EQ(plan_to_json(all).find("level"), std::string::npos);
  EXPECT_EQ(parse_plan(plan_to_json(all), all.graph).level, OptimizationLevel::all);
}

// What a plan was asked for comes back with it, so that the same can be asked with another budget. What is not stated is the
// default, and takes no bytes.
TEST(PlanJson, WhatWasAskedComesBack) {
  PlanOptions options;
  options.strategy = Strategy::greedy;
  options.ordering = Ordering::recorded;
  options.wishes = {{WishKind::recompute, "*"}, {WishKind::keep, "*"}};
  options.segment_us = 10;
  options.threads = 2;
  options.chunk_bytes = 4096;
  options.alignment = 128;
  options.split_phases = true;
  options.level = OptimizationLevel::none;
  const Plan plan = make_plan(sample_graph(), options), stored = parse_plan(plan_to_json(plan), plan.graph);
  EXPECT_TRUE(stored.asked == plan.asked);
  const PlanOptions again = options_asked(stored);
  EXPECT_EQ(again.strategy, options.strategy);
  EXPECT_EQ(again.ordering, options.ordering);
  EXPECT_TRUE(again.wishes == options.wishes);
  EXPECT_EQ(again.segment_us, options.segment_us);
  EXPECT_EQ(again.threads, options.threads);
  EXPECT_EQ(again.chunk_bytes, options.chunk_bytes);
  EXPECT_EQ(again.alignment, options.alignment);
  EXPECT_EQ(again.split_phases, options.split_phases);
  EXPECT_EQ(again.level, options.level);
  expect_same_plan(make_plan(sample_graph(), again), plan);
  EXPECT_EQ(plan_to_json(make_plan(sample_graph())).find("asked"), std::string::npos);
  Plan foreign = stored;
  foreign.asked.strategy = "of another program";
  EXPECT_THROW(options_asked(foreign), UsageError);
}

TEST(PlanJson, UnknownMembersAreSkipped) {
  const Plan plan = read_plan_json(R"({"schema":"tapedeck.plan_data/1","colour":[{"deep":[1]}],"nodes":3})");
  EXPECT_EQ(plan.nodes, 3);
}

TEST(PlanJson, RefusesAPlanOfAnotherGraph) {
  const Plan plan = make_plan(sample_graph());
  const Graph other = parse("graph g(%x: f32[2]) { %y: f32[2] = relu(%x) return %y }");
  EXPECT_NE(message_of<InvalidGraphError>([&] { parse_plan(plan_to_json(plan), other); }).find("its graph has 2 and 1"),
            std::string::npos);
}

TEST(PlanJson, RefusesAPlanThatBreaksTheRules) {
  Plan plan = make_plan(sample_graph());
  plan.arena_bytes -= 1;
  EXPECT_NE(message_of<InvalidGraphError>([&] { parse_plan(plan_to_json(plan), plan.graph); }).find("the plan is invalid"),
            std::string::npos);
}

}  // namespace
}  // namespace tapedeck
