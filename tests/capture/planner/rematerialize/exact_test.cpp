// Tests strategy `exact` against a search of all schedules that shares no idea with its integer program, and `auto` against it.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/rematerialize/recompute_program.h>
#include <tapedeck/capture/planner/solvers/integer_program.h>

#include <fmt/format.h>

#include <functional>
#include <map>
#include <queue>
#include <tuple>

namespace tapedeck {
namespace {

class Exact : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_program_solver()) GTEST_SKIP() << "built without CBC (Debian: coinor-libcbc-dev)";
  }

  static Plan plan(const Graph& graph, std::int64_t budget, Strategy strategy = strategy_named("exact")) {
    PlanOptions options;
    options.alignment = 1;
    options.budget = budget;
    options.ordering = Ordering::recorded;
    options.strategy = strategy;
    return make_plan(graph, options);
  }
};

// ---- the oracle ----

// A small graph as plain numbers: node i makes value i of bytes[i], and reads values.
struct Plain {
  std::vector<std::int64_t> bytes;
  std::vector<double> cost;
  std::vector<std::vector<int>> reads;

  int size() const { return static_cast<int>(bytes.size()); }
  std::int64_t bytes_of(unsigned set) const {
    std::int64_t sum = 0;
    for (int i = 0; i < size(); ++i) sum += set >> i & 1 ? bytes[i] : 0;
    return sum;
  }
};

// Random layers there and back: each node reads the node before it, so that there is one order of first runs.
Plain random_plain(std::mt19937* random, int layers) {
  const auto pick = [&](int n) { return static_cast<int>((*random)() % static_cast<unsigned>(n)); };
  Plain g;
  for (int i = 0; i < 2 * layers; ++i) {
    g.bytes.push_back(1 + pick(9));
    g.cost.push_back(1 + pick(7));
    g.reads.push_back({});
    if (i > 0) g.reads.back().push_back(i - 1);
    const int other = i < layers ? pick(std::max(i, 1)) : 2 * layers - 1 - i;
    if (other < i - 1 && (i >= layers || pick(3) == 0)) g.reads.back().push_back(other);
  }
  return g;
}

Graph graph_of(const Plain& g) {
  std::string text = "graph plain(%x: u8[0]) {\n";
  for (int i = 0; i < g.size(); ++i) {
    std::string operands = i == 0 ? "%x" : "";
    for (int operand : g.reads[i]) operands += fmt::format("{}%v{}", operands.empty() ? "" : ", ", operand);
    text += fmt::format("  %v{}: u8[{}] = opaque({}) {{us={:.1f}}}\n", i, g.bytes[i], operands, g.cost[i]);
  }
  return parse(text + fmt::format("  %end: u8[0] = opaque(%v{}) {{us=0.0}}\n  return %end\n}}\n", g.size() - 1), "plain");
}

// The least cost of running every node, and some of them again. A state is what has run for the first time and which values are
// there; a move runs a node whose operands are there, or drops a value. Infinity: no schedule fits.
double least_cost(const Plain& g, std::int64_t budget) {
  using State = std::pair<int, unsigned>;
  std::map<State, double> best;
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>, std::greater<>> open;
  const auto offer = [&](double cost, State state) {
    const auto [known, is_new] = best.try_emplace(state, cost);
    if (!is_new && known->second <= cost) return;
    known->second = cost;
    open.push({cost, state});
  };
  offer(0, {0, 0U});
  while (!open.empty()) {
    const auto [cost, state] = open.top();
    open.pop();
    const auto [done, there] = state;
    if (done == g.size()) return cost;
    if (best.at(state) < cost) continue;
    for (int i = 0; i <= done; ++i) {
      if (there >> i & 1) {
        offer(cost, {done, there & ~(1U << i)});
        continue;
      }
      bool can_run = true;
      for (int operand : g.reads[i]) can_run = can_run && (there >> operand & 1);
      const unsigned after = there | 1U << i;
      if (can_run && g.bytes_of(after) <= budget) offer(cost + g.cost[i], {std::max(done, i + 1), after});
    }
  }
  return kNoLimit;
}

double cost_of_all(const Plain& g) {
  double sum = 0;
  for (double cost : g.cost) sum += cost;
  return sum;
}

// ---- the program ----

struct Answered {
  double cost = kNoLimit;
  double relaxed = 0;
};

// The program alone, told nothing of what other strategies know.
Answered answer_of_program(const Graph& captured, std::int64_t budget) {
  PassRunner passes;
  const Graph graph = prepare(captured, &passes);
  const Facts facts = collect_facts(graph);
  const RecomputeProgram program(facts, budget - facts.external_bytes, kNoLimit, 1);
  Answered answered;
  answered.relaxed = facts.keep_all_cost + relaxed_cost(program.program(), {});
  const ProgramAnswer answer = solve(program.program(), {kNoLimit, 1, 100'000}, {});
  EXPECT_TRUE(answer.is_proven);
  if (answer.columns.empty()) return answered;
  Schedule schedule(facts);
  make_steps(program.changes(answer.columns), &schedule);
  EXPECT_LE(schedule.peak().bytes, budget - facts.external_bytes);
  answered.cost = facts.keep_all_cost + cost_of(program.changes(answer.columns), facts);
  EXPECT_NEAR(answered.cost, facts.keep_all_cost + answer.least_cost, 1e-6);
  return answered;
}

TEST_F(Exact, ProgramAnswersAsASearchOfAllSchedules) {
  std::mt19937 random(5);
  int infeasible = 0, recomputing = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const Plain plain = random_plain(&random, 3 + trial % 3);
    const Graph graph = graph_of(plain);
    const Plan keep_all = plan(graph, -1, Strategy::none);
    const std::int64_t budget = keep_all.peak_bytes * (45 + static_cast<std::int64_t>(random() % 55)) / 100;
    const double least = least_cost(plain, budget);
    const Answered answered = answer_of_program(graph, budget);
    EXPECT_EQ(answered.cost, least) << "trial " << trial << ", budget " << budget << "\n" << print(graph);
    EXPECT_LE(answered.relaxed, least * (1 + 1e-9)) << "trial " << trial;
    infeasible += least == kNoLimit;
    recomputing += least < kNoLimit && least > cost_of_all(plain);
  }
  EXPECT_GT(infeasible, 3);
  EXPECT_GT(recomputing, 10);
}

// ---- plans ----

TEST_F(Exact, AutoCostsAtMostATwentiethOfTheExtraWorkMore) {
  int recomputing = 0, proven = 0;
  for (unsigned seed = 0; seed < 9; ++seed) {
    std::mt19937 random(seed);
    const Plain plain = random_plain(&random, 5 + static_cast<int>(seed % 4));
    const Graph graph = graph_of(plain);
    PlanOptions options;
    options.alignment = 1;
    options.ordering = Ordering::recorded;
    PlanSearch searched(graph, options);
    for (const std::int64_t share : {0, 30, 60}) {
      const std::int64_t budget = searched.floor() + (searched.keep_all_peak() - searched.floor()) * share / 100;
      const Plan exact = plan(graph, budget), automatic = searched.plan(budget);
      ASSERT_TRUE(exact.feasible && automatic.feasible);
      EXPECT_LE(exact.peak_bytes, budget);
      EXPECT_GE(exact.cost_us, exact.cost_lower_bound_us) << exact.bound_from;
      proven += exact.cost_us == exact.cost_lower_bound_us;
      EXPECT_GE(automatic.cost_us, exact.cost_lower_bound_us * (1 - 1e-12)) << print(graph) << budget;
      const double keep_all = exact.keep_all_cost_us, allowed = std::max(0.05 * (exact.cost_us - keep_all), 0.001 * keep_all);
      EXPECT_LE(automatic.cost_us, exact.cost_us + allowed) << print(graph) << budget;
      recomputing += exact.recomputed_nodes > 0;
    }
  }
  EXPECT_GT(recomputing, 12);
  EXPECT_GT(proven, 15) << "offsets are found for most of the cheapest plans";
}

TEST_F(Exact, ChainOfTwelveLayersCostsTheKnownOptimum) {
  const Graph graph = test::unit_chain(12);
  const std::int64_t input = 1;  // the literature does not count it
  EXPECT_NEAR(answer_of_program(graph, 7 + input).cost / 36, 43.0 / 36, 1e-9);
  const Plan chain = plan(graph, 7 + input);
  EXPECT_EQ(chain.strategy, "exact");
  EXPECT_NEAR(chain.recompute_cost_ratio(), 1.1944, 1e-4);
  EXPECT_EQ(chain.cost_lower_bound_us, chain.cost_us);
}

// Every node of forward and backward reads the node before it, so no first run can wait, and the proof is one for `auto` too.
TEST_F(Exact, JudgesTrainingSteps) {
  int recomputing = 0;
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Graph graph = test::random_training(seed, 12);
    const std::int64_t peak = plan(graph, -1, Strategy::none).peak_bytes;
    const Plan exact = plan(graph, peak * 85 / 100), automatic = plan(graph, peak * 85 / 100, Strategy::automatic);
    if (!exact.feasible) continue;
    EXPECT_EQ(exact.bound_from.find("ended early"), std::string::npos) << exact.bound_from;
    EXPECT_LE(exact.cost_us, automatic.cost_us * (1 + 1e-12)) << seed;
    EXPECT_GE(automatic.cost_us, exact.cost_lower_bound_us * (1 - 1e-12)) << seed;
    EXPECT_LE(automatic.cost_us - exact.keep_all_cost_us, 1.05 * (exact.cost_us - exact.keep_all_cost_us) + 1e-9) << seed;
    recomputing += exact.recomputed_nodes > 0;
    test::expect_equal_steps(graph, exact);
  }
  EXPECT_GT(recomputing, 2);
}

// A search that ends early has a bound at least as high as that of the relaxation, and still a bound.
TEST_F(Exact, ASearchThatEndsEarlyBoundsTheCost) {
  PassRunner passes;
  const Graph graph = prepare(test::unit_chain(10), &passes);
  const Facts facts = collect_facts(graph);
  const RecomputeProgram program(facts, 5, kNoLimit, 1);
  const ProgramAnswer ended = solve(program.program(), {kNoLimit, 1, 1}, {});
  EXPECT_FALSE(ended.is_proven);
  EXPECT_GE(ended.least_cost, relaxed_cost(program.program(), {}) - 1e-6);
  EXPECT_LE(ended.least_cost, 8) << "the optimum of tests/bench/remat_optima.csv, over keep-all";
  EXPECT_GT(ended.least_cost, 0);
}

// A plan whose first runs wait may cost less than any that the program knows: nothing is said of it.
TEST_F(Exact, SaysNothingOfPlansWhoseFirstRunsWait) {
  const Graph graph = parse(R"(graph late(%x: u8[0]) {
  %a: u8[8] = opaque(%x) {us=5.0}
  %b: u8[4] = opaque(%x) {us=5.0}
  %c: u8[1] = opaque(%b) {us=5.0}
  %d: u8[1] = opaque(%c, %a) {us=5.0}
  %end: u8[0] = opaque(%d) {us=0.0}
  return %end
})");
  const Plan late = plan(graph, 10);
  ASSERT_TRUE(late.feasible);
  EXPECT_EQ(late.cost_us, late.keep_all_cost_us) << "%a waits until %c is there, and runs once";
  EXPECT_EQ(answer_of_program(graph, 10).cost, late.keep_all_cost_us + 5) << "%a runs twice";
  EXPECT_LE(late.cost_lower_bound_us, late.cost_us);
  EXPECT_EQ(late.bound_from.find("integer program"), std::string::npos) << late.bound_from;
}

TEST_F(Exact, SaysWhatIsProven) {
  const Plan chain = plan(test::unit_chain(12), 7);
  EXPECT_EQ(chain.cost_lower_bound_us, chain.cost_us);
  EXPECT_FALSE(chain.bound_from.empty());
}

TEST_F(Exact, RefusesLargeGraphs) {
  try {
    plan(test::unit_chain(70), 30);
    ADD_FAILURE() << "a graph of 142 nodes was planned";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("at most 128 nodes, and this one has 142"), std::string::npos) << error.what();
  }
}

TEST_F(Exact, CanBeCancelled) {
  PassRunner passes;
  const Graph graph = prepare(test::unit_chain(12), &passes);
  const Facts facts = collect_facts(graph);
  std::atomic<bool> cancel{true};
  EXPECT_THROW(strategy_entry("exact").solve(facts, 4, kNoLimit, {&cancel, {}}), Cancelled);
}

// Several results, views, in-place ops, state: what the strategy proves is a bound on the plans that it judges, and its own
// plans replay with equal bits.
TEST_F(Exact, PlansProgramsWithAllFeatures) {
  int recomputing = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Graph graph = test::RandomProgram(seed, 40).graph();
    PlanOptions options;
    options.strategy = strategy_named("exact");
    options.ordering = Ordering::recorded;
    options.budget_percent = 85;
    const Plan exact = make_plan(graph, options);
    ASSERT_EQ(check_plan(exact), std::vector<std::string>()) << seed;
    ASSERT_EQ(check_clones(exact), std::vector<std::string>()) << seed;
    if (!exact.feasible) continue;
    EXPECT_LE(exact.cost_lower_bound_us, exact.cost_us * (1 + 1e-12)) << seed << ": " << exact.bound_from;
    if (exact.recomputed_nodes == 0) continue;
    ++recomputing;
    test::expect_equal_steps(graph, exact);
  }
  EXPECT_GT(recomputing, 1);
}

// The program counts live bytes as schedules do: at the peak of keeping all nothing is recomputed, and one byte less does not
// fit without.
TEST_F(Exact, CountsBytesAsSchedulesDo) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    PassRunner passes;
    const Graph graph = prepare(test::RandomProgram(seed, 16).graph(), &passes);
    const Facts facts = collect_facts(graph);
    const std::int64_t peak = peak_without_clones(facts);
    EXPECT_NEAR(relaxed_cost(RecomputeProgram(facts, peak, kNoLimit, 1).program(), {}), 0, 1e-9) << seed << "\n"
                                                                                                 << print(graph);
    Facts once = facts;
    once.fixed_node.assign(once.fixed_node.size(), 1);
    if (peak == 0) continue;
    EXPECT_EQ(relaxed_cost(RecomputeProgram(once, peak - 1, kNoLimit, 1).program(), {}), kNoLimit) << seed << "\n"
                                                                                                   << print(graph);
  }
}

TEST(ExactWithoutCbc, NamesThePackage) {
  if (has_program_solver()) GTEST_SKIP() << "built with CBC";
  try {
    PlanOptions options;
    options.strategy = strategy_named("exact");
    make_plan(test::unit_chain(4), options);
    ADD_FAILURE() << "a program was solved without a solver";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("coinor-libcbc-dev"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tapedeck
