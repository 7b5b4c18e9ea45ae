// Tests the error for a plan that does not fit its budget: its fields, its place, and the least budget that it names.
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace tapedeck {
namespace {

// %m is the only large value. Level none keeps it although nobody reads it, so the peak is known by hand: two inputs and a
// result of 64 floats, and %m.
constexpr std::int64_t kPeak = 3 * 64 * 4 + 64 * 64 * 4;

Plan plan_with_large_value(const std::string& site) {
  return make_plan(parse(fmt::format(R"(graph g(%p: f32[64,1], %q: f32[1,64]) {{
    %y: f32[64,1] = neg(%p) [site="early.cpp:3"]
    %m: f32[64,64] = mul(%p, %q) [site="{}"]
    return %y
  }})",
                                     site)),
                   {.budget = 100, .level = OptimizationLevel::none});
}

TEST(InfeasiblePlan, HasFields) {
  const Plan plan = plan_with_large_value("train.cpp:12");
  ASSERT_FALSE(plan.feasible);
  const InfeasiblePlanError error("capture", plan, "no plan: ");
  EXPECT_STREQ(error.kind(), "InfeasiblePlanError");
  EXPECT_EQ(error.op(), "capture");
  EXPECT_EQ(error.file(), "train.cpp");
  EXPECT_EQ(error.line(), 12);
  EXPECT_EQ(error.node(), "m");
  EXPECT_EQ(error.node_op(), "mul");
  EXPECT_EQ(error.node_bytes(), kPeak);
  EXPECT_EQ(error.budget_bytes(), 100);
  EXPECT_EQ(error.floor_bytes(), kPeak);
  EXPECT_EQ(error.keep_all_peak_bytes(), kPeak);
  EXPECT_EQ(error.message(), "no plan: " + plan.infeasible_reason);
  EXPECT_EQ(std::string(error.what()), "[capture] no plan: " + plan.infeasible_reason + " (train.cpp:12)");
}

TEST(InfeasiblePlan, IsAnInfeasibleErrorAndCanBeCopied) {
  try {
    throw InfeasiblePlanError("", plan_with_large_value("train.cpp:12"));
  } catch (const InfeasibleError& error) {
    EXPECT_EQ(error.floor_bytes(), kPeak);
    const InfeasiblePlanError copy = dynamic_cast<const InfeasiblePlanError&>(error);
    EXPECT_EQ(copy.node(), "m");
    EXPECT_STREQ(copy.what(), error.what());
  }
}

TEST(InfeasiblePlan, ASiteThatIsNoPlaceGivesNone) {
  for (const char* site : {"train.cpp", "train.cpp:", "train.cpp:1x", "train.cpp:-1", "train.cpp:99999999999"}) {
    const InfeasiblePlanError error("", plan_with_large_value(site));
    EXPECT_EQ(error.file(), "") << site;
    EXPECT_EQ(error.line(), 0) << site;
    EXPECT_EQ(error.node(), "m") << site;
  }
  EXPECT_EQ(InfeasiblePlanError("", plan_with_large_value("C:/a b/train.cpp:7")).file(), "C:/a b/train.cpp");
}

TEST(InfeasiblePlan, AGraphWithoutNodes) {
  const Plan plan = make_plan(parse("graph g(%x: f32[64]) { return %x }"), {.budget = 10});
  ASSERT_FALSE(plan.feasible);
  const InfeasiblePlanError error("", plan);
  EXPECT_EQ(error.node() + error.node_op(), "");
  EXPECT_EQ(error.node_bytes(), 0);
  EXPECT_EQ(error.floor_bytes(), plan.peak_bytes);
}

// Layers whose results backward reads, so that recomputation lowers the peak.
Graph layers(int n) {
  std::string up, down;
  for (int i = 0; i < n; ++i) {
    up += fmt::format("  %a{}: f32[1000] = {}(%{})\n", i + 1, i % 2 ? "sin" : "cos", i ? fmt::format("a{}", i) : "x");
    down = fmt::format("  %g{0}: f32[1000] = mul(%g{1}, %a{1})\n", i, i + 1) + down;
  }
  return parse(fmt::format("graph f(%x: f32[1000]) {{\n{}  %g{}: f32[1000] = exp(%a{})\n{}  return %g0\n}}", up, n, n, down));
}

// The number that stands before `unit` in the text.
double number_before(const std::string& text, const std::string& unit) {
  const std::size_t end = text.find(unit), begin = text.find_last_of(' ', end - 1) + 1;
  return std::stod(text.substr(begin, end - begin));
}

TEST(InfeasiblePlan, TheLeastBudgetIsGivenInBytesAndInPercent) {
  for (int n : {3, 6, 11}) {
    const Graph g = layers(n);
    const Plan plan = make_plan(g, {.budget = 10});
    ASSERT_FALSE(plan.feasible);
    const std::string from_floor = plan.infeasible_reason.substr(plan.infeasible_reason.find("the floor is"));
    EXPECT_EQ(number_before(from_floor, " bytes"), static_cast<double>(plan.floor_bytes));
    const double percent = number_before(from_floor, " %");
    EXPECT_GT(percent, 0);
    EXPECT_LT(percent, 100) << from_floor;
    EXPECT_TRUE(make_plan(g, {.budget = plan.floor_bytes}).feasible);
    EXPECT_TRUE(make_plan(g, {.budget_percent = percent}).feasible) << from_floor;
    EXPECT_FALSE(make_plan(g, {.budget_percent = percent - 0.011}).feasible) << from_floor;
  }
}

TEST(InfeasiblePlan, AStrategyThatNeedsMoreNamesWhatItNeeds) {
  const Graph g = layers(8);
  const Plan plan = make_plan(g, {.budget = 10, .strategy = Strategy::none});
  EXPECT_NE(plan.infeasible_reason.find(fmt::format("strategy none needs {} bytes, 100.00 % of", plan.keep_all_peak_bytes)),
            std::string::npos)
      << plan.infeasible_reason;
}

}  // namespace
}  // namespace tapedeck
