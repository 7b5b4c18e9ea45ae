// Tests how a plan is cut into segments and how bytes are placed for several threads. The oracles are checks of every node,
// the byte simulation, and schedules worked out by hand.
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/engine/seeds.h>
#include <tapedeck/tests/engine/value_named.h>

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/segments/simulate_run.h>
#include <tapedeck/capture/replay/executor.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tapedeck {
namespace {

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Independent chains that meet at the end. They are recorded chain by chain, or, if `interleaved`, one node of every chain
// in turn.
Graph branches(int count, int length, bool interleaved, double us = 10, const std::string& type = "u8[1000]") {
  const auto v = [](int b, int i) { return i < 0 ? std::string("%x") : "%b" + std::to_string(b) + "_" + std::to_string(i); };
  const auto line = [&](int b, int i) {
    return v(b, i) + ": " + type + " = opaque(" + v(b, i - 1) + ") {us=" + std::to_string(us) + "}\n";
  };
  std::string text = "graph wide(%x: " + type + ") {\n";
  if (interleaved)
    for (int i = 0; i < length; ++i)
      for (int b = 0; b < count; ++b) text += line(b, i);
  else
    for (int b = 0; b < count; ++b)
      for (int i = 0; i < length; ++i) text += line(b, i);
  text += "%out: " + type + " = opaque(";
  for (int b = 0; b < count; ++b) text += (b ? ", " : "") + v(b, length - 1);
  return parse(text + ") {us=1.0}\nreturn %out\n}\n", "wide");
}

PlanOptions for_threads(int threads) {
  PlanOptions options;
  options.threads = threads;
  return options;
}

// Checks the promises of a plan's segments, node by node.
void expect_sound_cut(const Plan& plan, unsigned seed) {
  ASSERT_EQ(joined_lines(check_plan(plan)), "") << print(plan.graph);
  for (unsigned order = 0; order < 3; ++order) ASSERT_EQ(test::ByteSimulation(plan).run(seed + order), "") << print(plan.graph);
  double cost = 0;
  std::size_t nodes = 0;
  for (const Segment& s : plan.segments) cost += s.cost_us, nodes += s.nodes.size();
  EXPECT_EQ(nodes, plan.graph.nodes.size());
  EXPECT_NEAR(cost, plan.segment_rule.serial_us, 1e-6 * cost);
}

// The makespan is at least the total work divided by the threads: a kernel may use several threads, so a single segment may
// gain as much. The makespan is at most the total work plus the dispatch of every segment. The longest path of segments takes
// at least as long as the longest path of nodes.
void expect_possible(const Plan& plan) {
  std::vector<double> finish(plan.segments.size(), 0);
  double longest = 0, work = 0;
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    finish[s] += plan.segments[s].cost_us;
    work += plan.segments[s].cost_us;
    longest = std::max(longest, finish[s]);
    for (std::int32_t next : plan.segments[s].successors) finish[next] = std::max(finish[next], finish[s]);
  }
  const SegmentRule& r = plan.segment_rule;
  EXPECT_GE(r.makespan_us * plan.threads, work * (1 - 1e-9));
  EXPECT_GE(r.makespan_us * plan.threads, longest * (1 - 1e-9)) << "no kernel gains more than all threads";
  EXPECT_LE(r.makespan_us, work + r.dispatch_us * static_cast<double>(plan.segments.size()) + 1e-6 * work);
  EXPECT_GE(longest, r.critical_path_us * (1 - 1e-9)) << "segments cannot be done before their nodes";
}

class RandomSegments : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomSegments, AreSoundForAnyThreads) {
  const unsigned seed = GetParam();
  const Graph graph = test::RandomProgram(seed, 80).graph();
  for (int threads : {1, 2, 3, 4}) {
    PlanOptions options = for_threads(threads);
    options.find_floor = false;
    options.segment_us = seed % 4 == 0 ? 3 : seed % 4 == 1 ? 12 : 50;
    options.split_phases = seed % 5 == 0;
    if (seed % 3 == 0) options.budget_percent = 80;
    const Plan plan = make_plan(graph, options);
    ASSERT_NO_FATAL_FAILURE(expect_sound_cut(plan, seed)) << "threads " << threads << "\n" << print(graph);
    EXPECT_EQ(joined_lines(check_clones(plan)), "");
    expect_possible(plan);
    EXPECT_EQ(plan.threads, threads);
    const SegmentRule& r = plan.segment_rule;
    const std::vector<Phase> phases = run_phases(plan.graph);
    for (const Segment& s : plan.segments) {
      const double largest = std::max(r.most_us, 2 * r.least_us);
      double one_node = 0;  // a segment is closed once it costs enough, so its last node may exceed the limit
      for (NodeId n : s.nodes)
        one_node = std::max(one_node,
                            cost_us(*plan.graph.nodes[n].op, plan.graph.input_types(plan.graph.nodes[n]),
                                    plan.graph.output_types(plan.graph.nodes[n]), plan.graph.attributes(plan.graph.nodes[n])));
      EXPECT_LE(s.cost_us, largest + one_node + 1e-9);
      if (!options.split_phases) continue;
      for (NodeId n : s.nodes) EXPECT_EQ(phases[n], phases[s.nodes[0]]);
    }
    EXPECT_TRUE(options.budget_percent >= 0 ||
                static_cast<double>(plan.peak_bytes) <= options.parallel_peak * static_cast<double>(r.tight_peak_bytes));
    EXPECT_LE(r.makespan_us, r.tight_makespan_us * (1 + 1e-12));
    EXPECT_TRUE(threads > 1 || r.placement == "tight");
  }
}

TEST_P(RandomSegments, KeepBudgetsHardAndMonotone) {
  const Graph graph = test::RandomProgram(GetParam()).graph();
  double last_cost = std::numeric_limits<double>::infinity();
  bool fitted = false;
  for (double percent : {40, 60, 75, 85, 92, 100, 115}) {
    PlanOptions options = for_threads(2);
    options.segment_us = 12;
    options.budget_percent = percent;
    const Plan plan = make_plan(graph, options);
    ASSERT_NO_FATAL_FAILURE(expect_sound_cut(plan, GetParam()));
    EXPECT_EQ(plan.feasible, plan.peak_bytes <= plan.budget_bytes);
    EXPECT_TRUE(plan.feasible || !fitted) << "a larger budget became infeasible";
    fitted = plan.feasible;
    if (!fitted) continue;
    EXPECT_LE(plan.cost_us, last_cost);
    last_cost = plan.cost_us;
  }
}

TEST_P(RandomSegments, AreDeterministicAndSurviveJson) {
  const Graph graph = test::RandomProgram(GetParam(), 60).graph();
  const Plan a = make_plan(graph, for_threads(2)), b = make_plan(graph, for_threads(2));
  EXPECT_EQ(plan_to_json(a), plan_to_json(b));
  expect_same_plan(a, parse_plan(plan_to_json(a), a.graph));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSegments, ::testing::Range(0u, static_cast<unsigned>(test::seeds(150))));

// ---- the rule that cuts segments ----

TEST(Segments, DispatchIsAFiftiethOfTheTimeOrLess) {
  for (int threads : {1, 2, 4}) {
    for (bool interleaved : {false, true}) {
      const Plan plan = make_plan(branches(12, 40, interleaved, 0.7), for_threads(threads));
      const SegmentRule& r = plan.segment_rule;
      EXPECT_DOUBLE_EQ(r.least_us, 7.5);
      EXPECT_LE(static_cast<double>(plan.segments.size()) * r.dispatch_us, 0.02 * r.serial_us) << plan.segments.size();
      EXPECT_LE(r.makespan_us, r.serial_us * 1.02);
      expect_sound_cut(plan, 1);
    }
  }
}

TEST(Segments, BranchesRecordedStepByStepRunSideBySide) {
  const Graph graph = branches(16, 10, true);
  const Plan one = make_plan(graph), two = make_plan(graph, for_threads(2)), four = make_plan(graph, for_threads(4));
  EXPECT_LE(two.segment_rule.makespan_us, 0.6 * two.segment_rule.serial_us)
      << two.segment_rule.shape << " " << two.segment_rule.placement;
  EXPECT_LE(four.segment_rule.makespan_us, 0.35 * four.segment_rule.serial_us)
      << four.segment_rule.shape << " " << four.segment_rule.placement;
  EXPECT_EQ(two.segment_rule.placement, "apart") << "placed tightly, every branch waits for the bytes of the one before";
  EXPECT_GT(two.segment_rule.tight_makespan_us, 0.9 * two.segment_rule.serial_us);
  EXPECT_LE(static_cast<double>(two.peak_bytes), 1.15 * static_cast<double>(one.peak_bytes));
  expect_sound_cut(two, 1);
  expect_sound_cut(four, 1);
}

TEST(Segments, BranchesRecordedOneAfterTheOtherRunSideBySide) {
  PlanOptions options = for_threads(2);
  options.parallel_peak = 2;
  const Plan plan = make_plan(branches(4, 12, false, 40), options);
  EXPECT_LE(plan.segment_rule.makespan_us, 0.6 * plan.segment_rule.serial_us);
  expect_sound_cut(plan, 1);
}

// Bytes matter more than time: the placement for threads stays within the allowance and within the budget.
TEST(Segments, TheAllowanceAndTheBudgetBindThePlacement) {
  const Graph graph = branches(2, 10, false, 40);
  PlanOptions options = for_threads(2);
  options.parallel_peak = 1;
  const Plan tight = make_plan(graph, options);
  EXPECT_EQ(tight.segment_rule.placement, "tight");
  EXPECT_EQ(tight.peak_bytes, make_plan(graph).peak_bytes);
  options.parallel_peak = 3;
  const Plan apart = make_plan(graph, options);
  EXPECT_EQ(apart.segment_rule.placement, "apart");
  EXPECT_GT(apart.peak_bytes, tight.peak_bytes);
  options.budget = apart.peak_bytes - 1;
  const Plan under_budget = make_plan(graph, options);
  EXPECT_LE(under_budget.peak_bytes, options.budget);
  EXPECT_TRUE(under_budget.feasible);
  expect_sound_cut(under_budget, 1);
}

TEST(Segments, AChainIsOneThreadsWalk) {
  std::string text = "graph chain(%x: u8[100]) {\n";
  for (int i = 0; i < 60; ++i)
    text += "%a" + std::to_string(i) + ": u8[100] = opaque(%" + (i ? "a" + std::to_string(i - 1) : "x") + ") {us=5.0}\n";
  const Graph graph = parse(text + "return %a59\n}", "chain");
  const Plan one = make_plan(graph), four = make_plan(graph, for_threads(4));
  EXPECT_EQ(four.segment_rule.shape, "walk");
  EXPECT_EQ(four.segment_rule.placement, "tight");
  EXPECT_EQ(four.segments.size(), one.segments.size());
  EXPECT_DOUBLE_EQ(four.segment_rule.critical_path_us, four.segment_rule.serial_us);
  EXPECT_GE(four.segment_rule.makespan_us, four.segment_rule.serial_us);
  EXPECT_TRUE(four.intra_op.empty()) << "nothing else needs the threads";
}

TEST(Segments, KernelsUseIdleThreadsOnlyWhereThereAreAny) {
  // Two long branches occupy both threads. The long node after them can use both threads.
  const Graph graph = parse(R"(graph g(%x: u8[8]) {
    %a: u8[8] = opaque(%x) {us=400.0}
    %b: u8[8] = opaque(%x) {us=400.0}
    %c: u8[8] = opaque(%a, %b) {us=400.0}
    return %c
  })",
                            "g");
  const Plan plan = make_plan(graph, for_threads(2));
  ASSERT_EQ(plan.intra_op.size(), 3u);
  EXPECT_FALSE(plan.intra_op[0]);
  EXPECT_FALSE(plan.intra_op[1]);
  EXPECT_TRUE(plan.intra_op[2]);
  EXPECT_LT(plan.segment_rule.makespan_us, 700) << "the last node is helped";
  EXPECT_GT(plan.segment_rule.makespan_us, 600) << "but not for nothing";
}

TEST(Segments, SplitPhases) {
  const Graph graph = test::chain(6, 100, 1);
  PlanOptions options;
  EXPECT_EQ(make_plan(graph, options).segments.size(), 1u);
  options.split_phases = true;
  for (int threads : {1, 2}) {
    options.threads = threads;
    const Plan plan = make_plan(graph, options);
    EXPECT_EQ(plan.segments.size(), 2u);
    EXPECT_EQ(plan.segments[0].end, SegmentEnd::phase);
    EXPECT_TRUE(plan.segment_rule.split_phases);
  }
}

TEST(Segments, SayWhyTheyEnd) {
  const Graph graph = parse(R"(graph g(%x: u8[8]) {
    %a: u8[8] = opaque(%x) {us=30.0}
    %b: u8[8] = opaque(%a) {us=30.0}
    %t: u8[8] = to_device(%b) {device="cpu:1", from="cpu"}
    %c: u8[8] = opaque(%t) {us=1.0}
    return %c
  })",
                            "g");
  const Plan plan = make_plan(graph);
  ASSERT_EQ(plan.segments.size(), 3u);
  EXPECT_EQ(plan.segments[0].end, SegmentEnd::alone);
  EXPECT_EQ(plan.segments[1].nodes.size(), 1u) << "copies between devices stand alone";
  EXPECT_EQ(plan.segments[1].end, SegmentEnd::alone);
  EXPECT_EQ(plan.segments[2].end, SegmentEnd::last);
  PlanOptions options;
  options.segment_us = 20;
  EXPECT_EQ(make_plan(graph, options).segments[0].end, SegmentEnd::full);
}

// Constants are copied before the run. They need no workspace, although half-precision ops do, and no branch waits for them.
TEST(Segments, NobodyWaitsForConstants) {
  const Graph graph = parse(R"(graph g(%x: f16[4], %y: f16[4]) {
    %k: f16[4] = constant() {value=[1.0,2.0,3.0,4.0]}
    %a: f16[4] = erf(%x)
    %b: f16[4] = mul(%a, %k)
    %c: f16[4] = erf(%y)
    %d: f16[4] = mul(%c, %k)
    return %b, %d
  })",
                            "constants");
  for (double segment_us : {0.0, 0.2, 50.0}) {
    PlanOptions options = for_threads(2);
    options.segment_us = segment_us;
    options.parallel_peak = 4;
    const Plan plan = make_plan(graph, options);
    expect_sound_cut(plan, 1);
    for (NodeId n = 0; n < plan.graph.node_count(); ++n)
      EXPECT_TRUE(!plan.graph.literal(plan.graph.nodes[n]) || plan.workspace[n].bytes == 0);
    for (const Segment& s : plan.segments)
      if (segment_us == 0) {
        EXPECT_TRUE(!plan.graph.literal(plan.graph.nodes[s.nodes[0]]) || (s.successors.empty() && s.n_predecessors == 0));
      }
  }
}

TEST(Segments, T58_StaticSchedule) {
  const Graph graph = parse(R"(graph g(%a: f32[], %b: f32[], %c: f32[], %d: f32[]) {
    %p: f32[] = mul(%a, %b)
    %s: f32[] = add(%c, %d)
    %q: f32[] = div(%p, %s)
    %l: f32[] = log(%q)
    %e: f32[] = exp(%q)
    %y: f32[] = add(%l, %e)
    return %y
  })",
                            "streams");
  PlanOptions options = for_threads(2);
  options.segment_us = 0;
  options.parallel_peak = 4;  // so that exp need not be computed in the bytes that log reads
  const Plan plan = make_plan(graph, options);
  expect_sound_cut(plan, 1);
  ASSERT_EQ(plan.segments.size(), 6u);
  const auto& from_log = plan.segments[3].successors;
  EXPECT_EQ(std::count(from_log.begin(), from_log.end(), 4), 0) << "log and exp are free to run side by side";
  Executor executor(plan, {.threads = 2});
  const float operands[] = {2.f, .21f, 2.2f, 3.2f};
  for (int i = 0; i < 4; ++i) executor.set_input(i, scalar(operands[i]));
  for (int i = 0; i < 50; ++i) {
    executor.run();
    EXPECT_NEAR(executor.outputs()[0].to_vector<float>()[0], std::log(.0777778) + std::exp(.0777778), 1e-5);
  }
}

TEST(Segments, T86_BulkingOnAndOffGiveTheSameBits) {
  const Graph graph = parse(R"(graph g(%x: f32[64], %y: f32[64]) {
    %a: f32[64] = maximum(%x, %y)
    %b: f32[64] = minimum(%x, %y)
    %c: f32[64] = mul(%a, %x)
    %d: f32[64] = div(%b, %y)
    %e: f32[64] = sub(%c, %d)
    return %e, %a
  })",
                            "bind");
  std::vector<float> x, y;
  for (int i = 0; i < 64; ++i)
    x.push_back(0.3f * static_cast<float>(i - 30)), y.push_back(1.7f - 0.1f * static_cast<float>(i) + 0.05f);
  std::vector<std::vector<float>> results;
  for (double segment_us : {0.0, 0.5, 50.0})
    for (int threads : {1, 2}) {
      PlanOptions options = for_threads(threads);
      options.segment_us = segment_us;
      Executor executor(make_plan(graph, options), {.threads = threads});
      executor.set_input(0, from_vector(x, {64}));
      executor.set_input(1, from_vector(y, {64}));
      executor.run();
      results.push_back(executor.outputs()[0].to_vector<float>());
    }
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_FLOAT_EQ(results[0][i], std::max(x[i], y[i]) * x[i] - std::min(x[i], y[i]) / y[i]);
}

// ---- the simulated schedule ----

std::vector<Segment> three_segments() {  // 0 and 1 run side by side, then 2
  std::vector<Segment> s(3);
  s[0].nodes = {0}, s[0].successors = {2};
  s[1].nodes = {1}, s[1].successors = {2};
  s[2].nodes = {2}, s[2].n_predecessors = 2;
  return s;
}

TEST(Simulate, ByHand) {
  const std::vector<double> cost = {10, 20, 40};
  const std::vector<std::int32_t> alone = {1, 1, 1}, helped = {1, 1, 2};
  EXPECT_DOUBLE_EQ(simulate(three_segments(), cost, alone, {1, 1}).makespan_us, 73);
  const SimulatedRun two = simulate(three_segments(), cost, alone, {2, 1});
  EXPECT_DOUBLE_EQ(two.makespan_us, 1 + 20 + 1 + 40);
  EXPECT_EQ(two.crowded, (std::vector<bool>{true, false, false}))
      << "node 1 has company for 10 of its 20 us, not more than half";
  EXPECT_LT(two.ended[1], two.began[2]);
  EXPECT_LT(two.began[1], two.ended[0]);
  EXPECT_DOUBLE_EQ(simulate(three_segments(), cost, helped, {2, 1}).makespan_us, 1 + 20 + 1 + 40 / 1.8);
  EXPECT_DOUBLE_EQ(simulate(three_segments(), cost, alone, {8, 0}).makespan_us, 60);
}

TEST(Simulate, SlicesSayWhatEachThreadDid) {
  std::vector<SimulatedSlice> slices;
  const SimulatedRun run = simulate(three_segments(), {10, 20, 40}, {1, 1, 1}, {2, 1}, &slices);
  std::string text;
  for (const SimulatedSlice& s : slices)
    text += fmt::format("{} of segment {} on {} from {} to {}; ", s.node, s.segment, s.thread, s.start_us, s.end_us);
  EXPECT_EQ(text,
            "-1 of segment 0 on 0 from 0 to 1; -1 of segment 1 on 1 from 0 to 1; 0 of segment 0 on 0 from 1 to 11; "
            "1 of segment 1 on 1 from 1 to 21; -1 of segment 2 on 1 from 21 to 22; 2 of segment 2 on 1 from 22 to 62; ");
  EXPECT_EQ(run.makespan_us, 62);
}

// ---- how the checker judges segments ----

// Gives the same bytes to two branches that may run at the same time.
TEST(Segments, TheCheckerFindsBytesSharedBySideBySideBranches) {
  PlanOptions options = for_threads(2);
  options.parallel_peak = 3;
  Plan plan = make_plan(branches(2, 10, false, 40), options);
  ASSERT_EQ(joined_lines(check_plan(plan)), "");
  const ValueId a = testing::value_named(plan.graph, "b0_2"), b = testing::value_named(plan.graph, "b1_2");
  ASSERT_NE(plan.values[a].offset, plan.values[b].offset);
  plan.values[b].offset = plan.values[a].offset;
  EXPECT_NE(joined_lines(check_plan(plan)).find("share bytes"), std::string::npos) << joined_lines(check_plan(plan));
}

// Segments whose nodes interleave. Inside a segment nodes run in order; between two segments only edges set an order.
TEST(Segments, TheCheckerKnowsSegmentsThatSkipNodes) {
  Plan plan = make_plan(branches(16, 10, true), for_threads(2));
  bool skips = false;
  for (const Segment& s : plan.segments) skips |= s.nodes.back() - s.nodes.front() + 1 > static_cast<NodeId>(s.nodes.size());
  EXPECT_TRUE(skips);
  for (Segment& s : plan.segments) s.successors.clear(), s.n_predecessors = 0;
  EXPECT_NE(joined_lines(check_plan(plan)).find("may run before"), std::string::npos);
}

TEST(Segments, FormerFilesHoldRunsOfNodes) {
  Plan plan = make_plan(test::chain(6, 100, 1));
  std::string json = plan_to_json(plan), list;
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) list += (n ? "," : "") + std::to_string(n);
  const std::string now = "\"nodes\":[" + list + "]";
  const auto at = json.find(now);
  ASSERT_NE(at, std::string::npos) << json;
  const std::string former = "\"first\":0,\"n_nodes\":" + std::to_string(plan.graph.node_count());
  expect_same_plan(parse_plan(json.replace(at, now.size(), former), plan.graph), plan);
  json.replace(json.find(former), former.size(), "\"first\":0,\"n_nodes\":2000000000");
  EXPECT_THROW(parse_plan(json, plan.graph), InvalidGraphError);
}

TEST(Segments, BadOptionsAreUsageErrors) {
  const Graph graph = test::chain(2, 8);
  for (auto change : std::initializer_list<void (*)(PlanOptions&)>{
           [](PlanOptions& o) { o.threads = 0; }, [](PlanOptions& o) { o.threads = 100000; },
           [](PlanOptions& o) { o.dispatch_us = -1; }, [](PlanOptions& o) { o.dispatch_us = std::nan(""); },
           [](PlanOptions& o) { o.parallel_peak = 0.5; }, [](PlanOptions& o) { o.segment_us = -1; }}) {
    PlanOptions options;
    change(options);
    EXPECT_THROW(make_plan(graph, options), UsageError);
  }
}

}  // namespace
}  // namespace tapedeck
