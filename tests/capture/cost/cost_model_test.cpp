// Tests the origin of a node's microseconds (measured, scaled or estimated), and that all stages of the planner use these
// numbers. The expected values are worked out by hand.
#include <tapedeck/capture/cost/cost_model.h>

#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/planner_graphs.h>

#include <cmath>
#include <limits>

namespace tapedeck {
namespace {

Profile profile_of(std::vector<NodeTime> nodes) {
  Profile p;
  p.machine = "test";
  p.steps = 1;
  p.nodes = std::move(nodes);
  return p;
}

std::shared_ptr<const CostModel> model_of(std::vector<NodeTime> nodes) {
  return std::make_shared<const CostModel>(CostModel{{}, profile_of(std::move(nodes))});
}

Graph two_stretches() {
  return parse(R"(graph g(%x: u8[8]) {
    %cheap: u8[1000] = opaque(%x) {us=1.0}
    %dear: u8[1000] = opaque(%x) {us=100.0}
    %big: u8[3000] = opaque(%x) {us=1.0}
    %mid: u8[8] = opaque(%big) {us=1.0}
    %end: u8[8] = opaque(%mid, %cheap, %dear) {us=1.0} [phase=backward]
    return %end
  })",
               "costs");
}

TEST(CostModel, WithoutOneCostsAreTheBuiltInEstimates) {
  const Graph g = two_stretches();
  const NodeCosts costs = cost_nodes(g, nullptr);
  EXPECT_EQ(costs.us, node_costs(g));
  EXPECT_EQ(costs.source, "estimate");
  const CostModel empty;
  EXPECT_EQ(cost_nodes(g, &empty).us, node_costs(g));
  EXPECT_EQ(make_plan(g).costs, "estimate");
}

TEST(CostModel, WhatWasNotMeasuredIsScaledByTheMedianRatio) {
  const Graph g = two_stretches();
  // The ratios of measured to estimated time are 3, 0.5 and 10, so the median is 3.
  const CostModel model{
      {},
      profile_of(
          {{"cheap", "opaque", 3}, {"dear", "opaque", 50}, {"big", "opaque", 10}, {"gone", "exp", 7}, {"mid", "tanh", 7}})};
  const NodeCosts costs = cost_nodes(g, &model);
  EXPECT_EQ(costs.us, (std::vector<double>{3, 50, 10, 3, 3}));
  EXPECT_EQ(costs.scale, 3.0);
  EXPECT_EQ(costs.measured, 3);
  EXPECT_EQ(costs.strangers, 2) << "no node is named gone, and mid is another op";
  EXPECT_EQ(costs.source, "profile");
}

TEST(CostModel, TimesThatCannotBeAreNotBelieved) {
  const Graph g = two_stretches();
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, inf, -inf, -1.0, 1e16}) {
    const CostModel model{{}, profile_of({{"cheap", "opaque", bad}, {"dear", "opaque", 200}})};
    const NodeCosts costs = cost_nodes(g, &model);
    EXPECT_EQ(costs.us, (std::vector<double>{2, 200, 2, 2, 2})) << bad;
    EXPECT_EQ(costs.measured, 1);
    const CostModel nothing{{}, profile_of({{"cheap", "opaque", bad}})};
    EXPECT_EQ(cost_nodes(g, &nothing).us, node_costs(g));
    EXPECT_EQ(cost_nodes(g, &nothing).source, "estimate");
  }
}

TEST(CostModel, AProfileTurnsGreedysChoice) {
  const Graph g = parse(test::kCheapAndDear, "costs");
  PlanOptions options;
  options.budget_percent = 85;
  options.strategy = Strategy::greedy;
  options.ordering = Ordering::recorded;
  options.alignment = 1;
  ASSERT_EQ(make_plan(g, options).decisions.at(0).value, "cheap");
  options.costs = model_of({{"cheap", "opaque", 400}, {"dear", "opaque", 2}});
  const Plan plan = make_plan(g, options);
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_EQ(plan.decisions[0].value, "dear");
  EXPECT_EQ(plan.decisions[0].cost_us, 2.0);
  EXPECT_EQ(plan.costs, "profile");
  EXPECT_EQ(plan.measured_nodes, 2);
  expect_same_plan(plan, make_plan(g, options));
}

TEST(CostModel, AProfileMovesTheCutsOfSegments) {
  std::string text = "graph g(%x: f32[4]) {\n  %a0: f32[4] = exp(%x)\n";
  std::vector<NodeTime> slow;
  for (int i = 1; i < 40; ++i) {
    text += "  %a" + std::to_string(i) + ": f32[4] = tanh(%a" + std::to_string(i - 1) + ")\n";
    slow.push_back({"a" + std::to_string(i), "tanh", 1000});
  }
  const Graph g = parse(text + "  return %a39\n}\n", "chain");
  const Plan fast = make_plan(g);
  PlanOptions options;
  options.costs = model_of(slow);
  const Plan measured = make_plan(g, options);
  const auto sum = [](const Plan& p) {
    double us = 0;
    for (const Segment& s : p.segments) us += s.cost_us;
    return us;
  };
  EXPECT_NEAR(sum(measured), measured.cost_us, 1e-9 * measured.cost_us) << "segments and plan see the same numbers";
  EXPECT_GT(measured.cost_us, 39000);
  EXPECT_LT(fast.cost_us, 100);
  EXPECT_GE(measured.segments.size(), fast.segments.size());
}

TEST(CostModel, CalibratedRatesAreThePlansUnits) {
  const Graph g = parse("graph g(%x: f32[100]) {\n %a: f32[100] = exp(%x)\n %b: f32[100] = tanh(%a)\n return %b\n}\n", "two");
  Calibration c;
  c.ops["exp"] = {.version = find_op("exp")->version, .call_us = 2, .us_per_byte = 0.5};
  c.ops["tanh"] = {.version = find_op("tanh")->version + 1, .call_us = 1e6};  // rates of another version of the op are ignored
  c.kin_ratio[static_cast<std::size_t>(OpKin::elementwise)] = 4;
  const CostModel model{c, {}};
  const NodeCosts costs = cost_nodes(g, &model);
  EXPECT_EQ(costs.source, "calibrated");
  const Cost cost = counted_cost(*g.nodes[0].op, g.input_types(g.nodes[0]), g.output_types(g.nodes[0]), nullptr);
  EXPECT_DOUBLE_EQ(costs.us[0], 2 + 0.5 * cost.bytes);
  EXPECT_DOUBLE_EQ(costs.us[1], 4 * node_costs(g)[1]);
}

}  // namespace
}  // namespace tapedeck
