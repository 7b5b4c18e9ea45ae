// Tests the local search: its cheapest plans against proven optima of chains, what must hold for its plans on random programs,
// and its parts against simple models.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/engine/seeds.h>

#include <tapedeck/capture/analysis/live_peak.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/facts/unit_costs.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/rematerialize/plan_archive.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/take_back.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

Choices floor_choices(const Facts& facts) {
  const Facts unit = at_unit_costs(facts);
  const Choices greedy = strategy_entry("greedy").choose(unit, {});
  return strategy_entry("search").improve(unit, {{&greedy}, {}}, LookFor::floor, {});
}

Choices search_choices(const Facts& facts) {
  const Choices greedy = strategy_entry("greedy").choose(facts, {}), floor = floor_choices(facts);
  return strategy_entry("search").improve(facts, {{&greedy, &floor}, {}}, LookFor::budgets, {});
}

double cost_at(const Facts& facts, const Choices& choices, const ChoicePoint& point) {
  return schedule_cost(facts, runs_after(facts, choices.journal, point.journal));
}

// The cost of the cheapest point within the bound; infinity if there is none.
double cheapest_within(std::int64_t live_bytes, const Facts& facts, const Choices& choices) {
  double least = std::numeric_limits<double>::infinity();
  for (const ChoicePoint& point : choices.points)
    if (point.live_peak <= live_bytes) least = std::min(least, cost_at(facts, choices, point));
  return least;
}

// ---- chains: optima that CBC proved (tests/bench/remat_optima.py chain:N) ----

struct ProvenOptimum {
  int layers;
  std::int64_t live_bytes;
  double us;
};

class ChainOptimum : public ::testing::TestWithParam<ProvenOptimum> {};

TEST_P(ChainOptimum, IsFound) {
  const auto [layers, live_bytes, us] = GetParam();
  const Graph graph = test::unit_chain(layers);
  const Facts facts = collect_facts(graph);
  EXPECT_DOUBLE_EQ(cheapest_within(live_bytes, facts, search_choices(facts)), us);
}

INSTANTIATE_TEST_SUITE_P(Proven, ChainOptimum,
                         ::testing::Values(ProvenOptimum{10, 4, 44}, ProvenOptimum{10, 5, 38}, ProvenOptimum{10, 6, 36},
                                           ProvenOptimum{10, 7, 35}, ProvenOptimum{10, 8, 34}, ProvenOptimum{12, 7, 43},
                                           ProvenOptimum{16, 9, 57}, ProvenOptimum{20, 11, 71}));

// ---- what must hold on random programs ----

class SearchedPrograms : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    PassRunner passes;
    graph_ = prepare(test::RandomProgram(GetParam()).graph(), &passes);
    facts_ = collect_facts(graph_);
  }

  Graph graph_;
  Facts facts_;
};

TEST_P(SearchedPrograms, LiveBytesAreThoseOfTheGraphWithItsClones) {
  const Choices choices = search_choices(facts_);
  for (const ChoicePoint& point : choices.points) {
    const ClonedGraph cloned = clone_graph(facts_, runs_after(facts_, choices.journal, point.journal));
    EXPECT_NO_THROW(verify(cloned.graph));
    const Facts of_clones = collect_facts(cloned.graph);
    if (of_clones.external_bytes != facts_.external_bytes) continue;  // a clone's results may lie elsewhere than the original's
    EXPECT_EQ(peak_without_clones(of_clones), point.live_peak) << print(cloned.graph);
  }
}

TEST_P(SearchedPrograms, NothingIsDearerThanGreedy) {
  const Choices greedy = strategy_entry("greedy").choose(facts_, {}), searched = search_choices(facts_);
  const double tolerance = 1e-9 * facts_.keep_all_cost;
  for (const ChoicePoint& point : greedy.points)
    EXPECT_LE(cheapest_within(point.live_peak, facts_, searched), cost_at(facts_, greedy, point) + tolerance);
}

// A run that could be taken back, alone or with those that made its operands, would give a cheaper plan within the same bound.
TEST_P(SearchedPrograms, NoRunCanBeTakenBack) {
  const Choices choices = search_choices(facts_);
  const double tolerance = 1e-6 * facts_.keep_all_cost;
  for (const ChoicePoint& point : choices.points) {
    Schedule schedule(facts_);
    make_steps({choices.journal.begin(), choices.journal.begin() + static_cast<std::ptrdiff_t>(point.journal)}, &schedule);
    for (const Step& run : repeated_runs(facts_, schedule)) {
      const std::size_t before = schedule.journal().size();
      take_back(run, &schedule);
      const double cost = facts_.keep_all_cost + cost_of(changes_of(schedule), facts_);
      EXPECT_LE(cheapest_within(schedule.peak().bytes, facts_, choices), cost + tolerance) << graph_.node_text(run.node);
      schedule.undo_to(before);
      schedule.refresh();
    }
  }
}

TEST_P(SearchedPrograms, TheSameGraphGivesTheSamePoints) {
  const Choices once = search_choices(facts_), again = search_choices(facts_);
  EXPECT_EQ(once.journal, again.journal);
  ASSERT_EQ(once.points.size(), again.points.size());
  for (std::size_t i = 0; i < once.points.size(); ++i) EXPECT_EQ(once.points[i].live_peak, again.points[i].live_peak);
}

TEST_P(SearchedPrograms, PlansKeepTheirRules) {
  for (const double percent : {90.0, 75.0, 60.0}) {
    PlanOptions options;
    options.budget_percent = percent;
    options.strategy = strategy_named("search");
    const Plan plan = make_plan(test::RandomProgram(GetParam()).graph(), options);
    EXPECT_EQ(check_plan(plan), std::vector<std::string>()) << print(plan.graph);
    EXPECT_EQ(check_clones(plan), std::vector<std::string>()) << print(plan.graph);
    double us = plan.keep_all_cost_us;
    std::int32_t clones = 0;
    for (const Decision& d : plan.decisions) {
      us += d.cost_us;
      clones += d.clones;
      EXPECT_FALSE(d.reason.empty());
    }
    EXPECT_NEAR(us, plan.cost_us, 1e-6 * plan.cost_us);
    EXPECT_LE(clones, plan.recomputed_nodes) << "windows may be made again without a decision";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SearchedPrograms, ::testing::Range(0u, unsigned{test::seeds(40)}));

TEST(Search, CancelsWhileItSearches) {
  const Graph graph = test::unit_chain(60);
  const Facts facts = collect_facts(graph);
  const std::atomic<bool> cancel{true};
  const Choices greedy = strategy_entry("greedy").choose(facts, {});
  EXPECT_THROW(strategy_entry("search").improve(facts, {{&greedy}, {}}, LookFor::budgets, {&cancel, {}}), Cancelled);
}

// ---- the archive, compared with a list of everything offered ----

TEST(PlanArchive, HoldsWhatNothingOfferedBeats) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    PlanArchive archive(1e-9);
    std::vector<std::pair<std::int64_t, double>> offered;
    for (int i = 0; i < 30; ++i) {
      const std::pair<std::int64_t, double> plan{random() % 12, static_cast<double>(random() % 12)};
      offered.push_back(plan);
      archive.offer(plan.first, {plan.second, {}});
    }
    for (std::int64_t bound = 0; bound < 12; ++bound) {
      double least = 99;
      for (const auto& [peak, cost] : offered)
        if (peak <= bound) least = std::min(least, cost);
      const ArchivedPlan* plan = archive.cheapest_within(bound);
      EXPECT_EQ(plan ? plan->cost : 99, least) << "seed " << seed;
    }
    double above = 99;
    for (const auto& [peak, plan] : archive.plans()) {
      EXPECT_LT(plan.cost, above) << "seed " << seed;
      above = plan.cost;
    }
  }
}

// ---- changes ----

TEST(Changes, StepsBetweenTwoSchedulesLeadFromOneToTheOther) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    PassRunner passes;
    const Graph graph = prepare(test::RandomProgram(seed).graph(), &passes);
    const Facts facts = collect_facts(graph);
    const Choices choices = search_choices(facts);
    Schedule schedule(facts);
    std::mt19937 random(seed);
    for (int jump = 0; jump < 10 && !choices.points.empty(); ++jump) {
      const ChoicePoint& point = choices.points[random() % choices.points.size()];
      const Changes target = changes_after(facts, choices.journal, point.journal);
      make_steps(steps_between(changes_of(schedule), target), &schedule);
      EXPECT_EQ(changes_of(schedule), target);
      EXPECT_EQ(schedule.peak().bytes, point.live_peak);
    }
  }
}

// The bound is compared with the schedule from which the run was taken back indeed.
TEST(Schedule, BoundsWhatIsLeftWithoutARun) {
  int bounded = 0;
  for (unsigned seed = 0; seed < 48; ++seed) {
    PassRunner passes;
    const Graph graph = seed < 40 ? prepare(test::RandomProgram(seed).graph(), &passes)
                                  : prepare(test::random_training(seed, 12 + static_cast<int>(seed % 8)), &passes);
    if (graph.nodes.empty()) continue;
    const Facts facts = collect_facts(graph);
    const Choices choices = search_choices(facts);
    for (const ChoicePoint& point : choices.points) {
      Schedule schedule(facts);
      make_steps({choices.journal.begin(), choices.journal.begin() + static_cast<std::ptrdiff_t>(point.journal)}, &schedule);
      const double cost = cost_of(changes_of(schedule), facts);
      for (const Step& run : repeated_runs(facts, schedule)) {
        const Schedule::Without least = schedule.least_without(run.stage, run.node);
        const std::size_t before = schedule.journal().size();
        take_back(run, &schedule);
        ASSERT_LE(least.bytes, schedule.peak().bytes) << "seed " << seed;
        if (least.bytes > 0) {
          ASSERT_LE(cost - least.saved_us, cost_of(changes_of(schedule), facts) + 1e-9 * (cost + 1)) << "seed " << seed;
          ++bounded;
        }
        schedule.undo_to(before);
        schedule.refresh();
      }
    }
  }
  EXPECT_GT(bounded, 100) << "the bound says something";
}

TEST(LiveTree, ReadsAllStagesAtOnce) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto n = static_cast<NodeId>(1 + random() % 40);
    LiveTree tree(std::vector<std::int64_t>(static_cast<std::size_t>(n), 0));
    for (int i = 0; i < 20; ++i) {
      const auto first = static_cast<NodeId>(random() % static_cast<unsigned>(n));
      tree.add(first, static_cast<NodeId>(first + random() % static_cast<unsigned>(n - first)), random() % 9);
    }
    std::vector<std::int64_t> all(static_cast<std::size_t>(n));
    tree.read(&all);
    for (NodeId stage = 0; stage < n; ++stage) EXPECT_EQ(all[stage], tree.at(stage)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tapedeck
