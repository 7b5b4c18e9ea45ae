// Tests the regions of nodes as models of their own. The oracles are the plans of the regions themselves, and sums.
#include <tapedeck/tests/viewer/loops.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/plan/regions.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {
namespace {

class Regions : public ::testing::Test {
 protected:
  NodeId node(const char* op) const {
    for (NodeId n = 0; n < model->nodes(); ++n)
      if (std::string(model->graph().nodes[static_cast<std::size_t>(n)].op->name) == op) return n;
    ADD_FAILURE() << op;
    return kNone;
  }
  const std::shared_ptr<const PlanModel> model = PlanModel::of(make_plan(parse(graph_with_loops())));
};

TEST_F(Regions, EachHasItsNodesItsNameAndItsFrame) {
  const NodeRegions scan = regions_of(*model, node("scan"));
  ASSERT_EQ(scan.regions.size(), 1u);
  EXPECT_EQ(scan.runs, "100 passes");
  EXPECT_EQ(scan.regions[0].title, "body");
  EXPECT_EQ(scan.regions[0].nodes, 3);
  EXPECT_TRUE(scan.regions[0].is_planned);
  // What a pass makes: at least one value of 64 KiB beside its result, and at most three.
  EXPECT_GE(scan.regions[0].arena_bytes, 65536);
  EXPECT_LE(scan.regions[0].arena_bytes, 3 * 65536);
  // The workspace has the number of the pass, the arena and the result.
  EXPECT_EQ(scan.workspace, 64 + scan.regions[0].arena_bytes + 65536);
  EXPECT_GT(scan.regions[0].us, 0);

  const NodeRegions loop = regions_of(*model, node("while"));
  ASSERT_EQ(loop.regions.size(), 2u);
  EXPECT_EQ(loop.runs, "as many passes as the condition allows, at most 7");
  EXPECT_EQ(loop.regions[0].title + " " + loop.regions[1].title, "condition body");
  EXPECT_EQ(loop.regions[0].nodes, 0);
  EXPECT_EQ(loop.regions[1].nodes, 2);

  const NodeRegions branch = regions_of(*model, node("cond"));
  ASSERT_EQ(branch.regions.size(), 2u);
  EXPECT_EQ(branch.regions[0].title + ", " + branch.regions[1].title, "if true, if false");
  EXPECT_EQ(branch.regions[1].nodes, 2);
  EXPECT_TRUE(regions_of(*model, node("relu")).regions.empty());
}

TEST_F(Regions, ARegionIsDrawnByItsOwnPlan) {
  const auto body = region_model(*model, node("scan"), 0);
  const Plan& plan = *model->plan().region_plans_of(model->graph().nodes[static_cast<std::size_t>(node("scan"))])[0];
  EXPECT_EQ(body->plan().peak_bytes, plan.peak_bytes);
  EXPECT_EQ(body->nodes(), 3);
  for (NodeId n = 0; n < body->nodes(); ++n) {
    std::int64_t alive = 0;
    for (const PlanRect& rect : body->alive(n)) alive += rect.bytes;
    EXPECT_EQ(alive, body->curve()[static_cast<std::size_t>(n)]) << n;
  }
  EXPECT_EQ(body->name_of(body->graph().nodes[1].first_output), "%t");
}

TEST_F(Regions, AWayIsFoundByNamesAndEndsWhereThePlanHasNoSuchNode) {
  const RegionPlace place = place_inside(model, {{"n", 1}});
  EXPECT_EQ(place.node, node("while"));
  EXPECT_EQ(place.around, model);
  ASSERT_EQ(place.names.size(), 1u);
  EXPECT_EQ(place.names[0], "while %n, body");
  EXPECT_EQ(place.model->nodes(), 2);
  EXPECT_EQ(place_inside(model, {{"gone", 0}}).model, model);
  EXPECT_TRUE(place_inside(model, {{"y", 1}}).path.empty());  // a scan has one region
  EXPECT_EQ(place_inside(model, {{"y", 0}, {"t", 0}}).path, (RegionPath{{"y", 0}}));
}

}  // namespace
}  // namespace tapedeck::viewer
