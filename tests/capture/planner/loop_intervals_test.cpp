// The planner chooses how many carried values the backward of a loop keeps. Whatever it chooses, the bits are those of eager
// code, the observed peak is the planned one, and a larger budget never costs more.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/loop_intervals.h>
#include <tapedeck/engine/ops/control.h>

#include <tapedeck/tests/capture/planner/loop_programs.h>

#include <algorithm>
#include <string>

namespace tapedeck::testing {
namespace {

constexpr std::int64_t kLoopPasses = 64, kLoopWidth = 1024;

// A scan of 64 passes over a state of 4 KiB, with its backward.
Recorded recurrence(std::int64_t checkpoint_every, std::int64_t passes = kLoopPasses) {
  const auto program = [=](const Tensors& in) {
    LoopOptions options;
    options.checkpoint_every = checkpoint_every;
    options.max_trips = passes;
    const LoopResult r = scan([&](const Tensors& c) { return Tensors{tanh(c[0] * in[1] + in[1])}; }, {in[0]}, {}, {}, options);
    Tensors results = gradients({sum(r.carried[0] * r.carried[0])}, {in[0], in[1]});
    results.push_back(r.carried[0]);
    return results;
  };
  std::vector<float> start, weights;
  for (std::int64_t i = 0; i < kLoopWidth; ++i) {
    start.push_back(static_cast<float>(i % 17) / 16);
    weights.push_back(0.5f + static_cast<float>(i % 5) / 8);
  }
  Recorded r;
  r.inputs = {leaf(start, {kLoopWidth}), leaf(weights, {kLoopWidth})};
  r.graph = check_program(program, r.inputs, &r.wanted);
  return r;
}

std::int64_t checkpoint_in(const Plan& plan) {
  for (const Node& node : plan.graph.nodes)
    if (node.op == &ops::loop_grad) return static_cast<const LoopGradAttrs*>(plan.graph.attributes(node))->checkpoint;
  ADD_FAILURE() << "the plan has no loop_grad";
  return 0;
}

TEST(LoopIntervals, WithoutABudgetALoopKeepsWhatWasRecorded) {
  for (const std::int64_t every : {std::int64_t{1}, std::int64_t{4}}) {
    const Plan plan = make_plan(recurrence(every).graph);
    EXPECT_EQ(checkpoint_in(plan), every);
    EXPECT_EQ(plan.decisions.size(), 0u);
    EXPECT_EQ(plan.peak_bytes, plan.keep_all_peak_bytes);
  }
}

TEST(LoopIntervals, BudgetsAreMetBitForBitAndALargerOneNeverCostsMore) {
  const Recorded r = recurrence(1);
  const Plan keeps = make_plan(r.graph);
  double cost = 1e300;
  std::vector<std::int64_t> chosen;
  for (int percent = 30; percent <= 100; percent += 10) {
    SCOPED_TRACE(percent);
    const std::int64_t budget = keeps.peak_bytes * percent / 100;
    const Plan plan = plan_for(r.graph, budget);
    expect_good(plan, budget, keeps, r);
    EXPECT_LE(plan.cost_us, cost);
    cost = plan.cost_us;
    chosen.push_back(checkpoint_in(plan));
  }
  EXPECT_EQ(chosen.back(), 1);
  std::sort(chosen.begin(), chosen.end());
  EXPECT_GE(std::unique(chosen.begin(), chosen.end()) - chosen.begin(), 3) << "the interval hardly follows the budget";
}

// With about 2 sqrt(n) entries the tape of a loop four times as long takes at most about twice the bytes.
TEST(LoopIntervals, TheFloorGrowsAtMostAsTheSquareRootOfThePasses) {
  const Plan shorter = plan_for(recurrence(1, 64).graph, 1), longer = plan_for(recurrence(1, 256).graph, 1);
  EXPECT_LT(longer.floor_bytes, 2 * shorter.floor_bytes);
  EXPECT_GT(longer.keep_all_peak_bytes, 3 * shorter.keep_all_peak_bytes);
  EXPECT_LT(shorter.floor_bytes, shorter.keep_all_peak_bytes / 3);
}

TEST(LoopIntervals, TheDecisionSaysWhatItSavesAndCosts) {
  const Recorded r = recurrence(1);
  const Plan keeps = make_plan(r.graph);
  const Plan plan = plan_for(r.graph, keeps.peak_bytes / 2 + 8 * 4096);
  ASSERT_EQ(plan.decisions.size(), 1u);
  const Decision& d = plan.decisions[0];
  EXPECT_NE(d.reason.find("keeps the carried values of one pass in"), std::string::npos) << d.reason;
  EXPECT_EQ(d.clones, 0);
  EXPECT_EQ(d.bytes, keeps.peak_bytes - plan.peak_bytes);
  EXPECT_NEAR(d.cost_us, plan.cost_us - plan.keep_all_cost_us, 1e-6);
}

TEST(LoopIntervals, AStoredPlanKeepsTheInterval) {
  const Recorded r = recurrence(1);
  const Plan plan = plan_for(r.graph, make_plan(r.graph).peak_bytes / 2);
  const Plan back = parse_plan(plan_to_json(plan), parse(print(plan.graph)));
  EXPECT_NE(checkpoint_in(back), 1);
  EXPECT_EQ(checkpoint_in(back), checkpoint_in(plan));
  EXPECT_EQ(check_plan(back), std::vector<std::string>());
}

// The tape has room for the bound of 64 passes; the loop ends after 40 of them, or after one.
TEST(LoopIntervals, ALoopThatEndsBeforeItsBoundWalksBackToo) {
  for (const double passes : {40.0, 1.0}) {
    Recorded r;
    r.inputs = {leaf(std::vector<float>(kLoopWidth, 0.5f), {kLoopWidth}),
                leaf(std::vector<float>(kLoopWidth, 0.9f), {kLoopWidth})};
    r.graph = check_program(
        [passes](const Tensors& in) {
          LoopOptions options;
          options.max_trips = kLoopPasses;
          const LoopResult loop = while_loop([passes](const Tensors& c) { return less(c[1], passes); },
                                             [&](const Tensors& c) {
                                               return Tensors{tanh(c[0] * in[1]) + in[1], c[1] + 1.0};
                                             },
                                             {in[0], scalar(0.0)}, {}, options);
          return gradients({sum(loop.carried[0] * loop.carried[0])}, {in[0], in[1]});
        },
        r.inputs, &r.wanted);
    const std::int64_t whole = make_plan(r.graph).peak_bytes;
    for (const std::int64_t budget : {whole * 6 / 10, whole * 4 / 10, whole * 3 / 10}) {
      const Plan plan = plan_for(r.graph, budget);
      EXPECT_NE(checkpoint_in(plan), 0);
      expect_replays(plan, r);
    }
  }
}

// The backward of a loop. The words in capitals are put in by one_loop().
const char* const kLoops = R"(graph back(%c: f32[64], %w: f32[64], %dc: f32[64]) {
  %n: i64[] = constant() {value=PASSES}
  %gc: f32[64], %gw: f32[64] = loop_grad(%n, %c, %w, %dc, %w) {carried=1, trips=BOUND, checkpoint=1, needs="11"} (%i: i64[],
    %c: f32[64], %w: f32[64]) {
    %q: f32[64] = mul(%c, %w)EFFECT
    return %q
  } (%i: i64[], %c: f32[64], %w: f32[64], %d: f32[64], %a: f32[64]) {
    %x: f32[64] = mul(%d, %w)
    %y: f32[64] = mul(%d, %c)
    %b: f32[64] = add(%a, %y)
    return %x, %b
  }
  return %gc, %gw
})";

Graph one_loop(const std::string& passes, const std::string& bound, const std::string& effect = "") {
  std::string text = kLoops;
  const auto put = [&text](const std::string& what, const std::string& by) { text.replace(text.find(what), what.size(), by); };
  put("PASSES", passes);
  put("BOUND", bound);
  put("EFFECT", effect);
  return parse(text, "loops");
}

std::string why_stays(const Graph& g) {
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (g.nodes[n].op == &ops::loop_grad) return why_interval_stays(g, n);
  return "no loop";
}

TEST(LoopIntervals, ALoopWithoutABoundOrWithAnEffectKeepsItsIntervalAndSaysWhy) {
  EXPECT_EQ(why_stays(one_loop("40", "40")), "");
  EXPECT_EQ(checkpoint_in(plan_for(one_loop("40", "40"), 1)), kCheckpointLog);
  const Graph unbounded = one_loop("40", "-1"), effect = one_loop("40", "40", "\n    %p: u8[0] = on_host(%q)"),
              tiny = one_loop("2", "2");
  EXPECT_NE(why_stays(unbounded).find("nothing bounds"), std::string::npos);
  EXPECT_NE(why_stays(effect).find("has an effect"), std::string::npos);
  EXPECT_NE(why_stays(tiny).find("no other one"), std::string::npos);
  for (const Graph* g : {&unbounded, &effect, &tiny}) EXPECT_EQ(checkpoint_in(plan_for(*g, 1)), 1);
}

TEST(LoopIntervals, StrategiesThatWorkForNoBudgetLeaveLoopsAlone) {
  const Recorded r = recurrence(1);
  const std::int64_t half = make_plan(r.graph).peak_bytes / 2;
  for (const Strategy strategy : {Strategy::none, Strategy::regions}) {
    const Plan plan = plan_for(r.graph, half, strategy);
    EXPECT_EQ(checkpoint_in(plan), 1);
    EXPECT_FALSE(plan.feasible);
  }
  EXPECT_TRUE(plan_for(r.graph, half, Strategy::greedy).feasible);
}

}  // namespace
}  // namespace tapedeck::testing
