// Tests the regions of nodes as models of their own. The oracles are the plans of the regions themselves, and sums.
#include <tapedeck/tests/viewer/loops.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/kernels/attrs/control.h>
#include <tapedeck/viewer/plan/regions.h>
#include <tapedeck/viewer/plan/workspace_parts.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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

std::int64_t bytes_of(const std::vector<WorkspacePart>& parts, const std::string& name) {
  for (const WorkspacePart& part : parts)
    if (part.name == name) return part.bytes;
  return -1;
}

std::int64_t sum_of_parts(const std::vector<WorkspacePart>& parts) {
  std::int64_t sum = 0;
  for (const WorkspacePart& part : parts) sum += part.bytes;
  return sum;
}

TEST_F(Regions, TheWorkspaceIsTheSumOfItsParts) {
  const ByteUnit unit = ByteUnit::of(1 << 20);
  for (const char* op : {"scan", "while", "cond"}) {
    const std::vector<WorkspacePart> parts = workspace_parts(*model, node(op), 0, unit);
    ASSERT_EQ(parts.size(), 2u) << op;  // none of them has a tape
    EXPECT_EQ(sum_of_parts(parts), model->plan().workspace[static_cast<std::size_t>(node(op))].bytes) << op;
  }
  const std::vector<WorkspacePart> scan = workspace_parts(*model, node("scan"), 0, unit);
  EXPECT_EQ(bytes_of(scan, "index"), 64);
  EXPECT_EQ(bytes_of(scan, "frame"), regions_of(*model, node("scan")).regions[0].arena_bytes + 65536);
  EXPECT_NE(scan[1].sentence.find(unit.exact_text(bytes_of(scan, "frame"))), std::string::npos) << scan[1].sentence;
  EXPECT_EQ(result_bytes(region_model(*model, node("scan"), 0)->plan()), 65536);
  EXPECT_TRUE(workspace_parts(*model, node("relu"), 0, unit).empty());
}

// Walks back over the passes with a checkpoint at every `interval`-th: the most entries at once, and the runs of a pass beyond
// those that the way forward needs.
struct WalkedBack {
  std::int64_t entries = 0, reruns = 0;
};
WalkedBack walked_back(std::int64_t passes, std::int64_t interval) {
  WalkedBack walk;
  std::vector<std::int64_t> kept;  // the passes whose carried values are kept
  std::int64_t runs = 0;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    if (pass % interval == 0) kept.push_back(pass);
    runs += pass / interval < (passes - 1) / interval;  // up to the last checkpoint
  }
  for (std::int64_t pass = passes; pass-- > 0;) {
    for (; kept.back() < pass; ++runs) kept.push_back(kept.back() + 1);
    walk.entries = std::max(walk.entries, static_cast<std::int64_t>(kept.size()));
    kept.pop_back();
  }
  walk.reruns = runs - (passes - 1);
  return walk;
}

TEST(GradientOfALoop, HasATapeOfCheckpointsAndReruns) {
  const auto model = PlanModel::of(make_plan(parse(graph_with_a_loop_gradient())));
  ASSERT_EQ(model->nodes(), 1);
  const auto& loop = *static_cast<const LoopGradAttrs*>(model->graph().attributes(model->graph().nodes[0]));
  ASSERT_GT(loop.checkpoint, 0);  // the planner may choose another interval than the graph has
  const WalkedBack walk = walked_back(9, loop.checkpoint);
  const std::vector<WorkspacePart> parts = workspace_parts(*model, 0, 1, ByteUnit::of(1024));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_GE(bytes_of(parts, "tape"), walk.entries * 256);
  EXPECT_LE(bytes_of(parts, "tape"), (walk.entries + 1) * 256);  // one more may be made before another is given back
  EXPECT_EQ(sum_of_parts(parts), model->plan().workspace[0].bytes);
  EXPECT_NE(parts[2].sentence.find("up to 9 passes need up to " + std::to_string(walk.reruns) + " such rerun"),
            std::string::npos)
      << parts[2].sentence;
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
