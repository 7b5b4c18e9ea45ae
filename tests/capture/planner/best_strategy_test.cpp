// Tests that `auto` starts from the best of all other strategies: at every budget its plan costs no more than the plan of any
// strategy that is named.
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/tradeoff.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tapedeck {
namespace {

// Eight budgets from the floor to the peak that keeps all.
std::vector<std::int64_t> budgets_of(const PlanSearch& search) {
  std::vector<std::int64_t> budgets;
  for (int i = 0; i < 8; ++i) budgets.push_back(search.floor() + (search.keep_all_peak() - search.floor()) * i / 7);
  return budgets;
}

// Returns the number of plans by named strategies that fit and recompute.
int expect_no_strategy_is_cheaper(const Graph& graph, PlanSearch* search, const std::vector<std::int64_t>& budgets) {
  int recomputing = 0;
  std::vector<Plan> automatic;
  for (const std::int64_t budget : budgets) {
    automatic.push_back(search->plan(budget));
    EXPECT_TRUE(automatic.back().feasible) << budget << " is not below the floor";
  }
  for (const Strategy strategy : every_strategy()) {
    std::unique_ptr<PlanSearch> own;
    if (!search->answers_for(strategy)) own = std::make_unique<PlanSearch>(graph, PlanOptions{.strategy = strategy});
    for (std::size_t i = 0; i < budgets.size(); ++i) {
      const Plan named = (own ? *own : *search).plan(budgets[i], strategy);
      if (!named.feasible) continue;
      EXPECT_LE(automatic[i].cost_us, named.cost_us) << strategy_name(strategy) << " at a budget of " << budgets[i];
      recomputing += named.recomputed_nodes > 0;
    }
  }
  return recomputing;
}

int expect_auto_is_best(const Graph& graph) {
  PlanSearch search(graph);
  return expect_no_strategy_is_cheaper(graph, &search, budgets_of(search));
}

Graph model(const char* name, ModelOptions options = {}) {
  options.abstract = true;
  return record_model(*find_model(name), options).graph;
}

TEST(BestStrategy, IsAutoInModels) {
  EXPECT_GT(expect_auto_is_best(model("cnn", {.batch = 8})), 8);
  EXPECT_GT(expect_auto_is_best(model("unet", {.batch = 1, .image = 32, .width = 4})), 8);
}

// A budget at which `sqrt` once found a plan with half as much extra work as `auto`.
TEST(BestStrategy, IsAutoInVgg16) {
  const Graph graph = model("vgg16");
  PlanSearch search(graph);
  EXPECT_GT(expect_no_strategy_is_cheaper(graph, &search, {1'020'000'000}), 1);
}

#ifdef TAPEDECK_SANITIZED
constexpr unsigned kSeeds = 3;
#else
constexpr unsigned kSeeds = 12;
#endif

TEST(BestStrategy, IsAutoInRandomPrograms) {
  int recomputing = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    recomputing += expect_auto_is_best(test::random_training(seed, 8 + static_cast<int>(2 * seed)));
    recomputing += expect_auto_is_best(test::RandomProgram(seed).graph());
    recomputing += expect_auto_is_best(test::chain(4 + static_cast<int>(seed), 1000));
  }
  EXPECT_GT(recomputing, static_cast<int>(20 * kSeeds));
}

}  // namespace
}  // namespace tapedeck
