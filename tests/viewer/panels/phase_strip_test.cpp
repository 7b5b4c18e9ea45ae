// Tests the strip of phases below the plots against the simple way to draw it: run after run, each at least a unit wide.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/panels/plot.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

namespace tapedeck::viewer {
namespace {

constexpr int kWidth = 320, kHeight = 120;

class AxisPicture : public Picture {
 public:
  AxisPicture(const PlanModel& model, const Plot& plot) : model_(model), plot_(plot) {}
  void draw(float, float) override { draw_time_axis(plot_, model_); }

 private:
  const PlanModel& model_;
  const Plot& plot_;
};

int kind_of(const Graph& graph, NodeId n) {
  const Origin& origin = graph.nodes[n].origin;
  return origin.clone ? 3 : static_cast<int>(origin.phase);
}

// The kind that is seen in each column; -1: none.
std::vector<int> columns_by_runs(const Graph& graph, const Plot& plot) {
  std::vector<int> seen(kWidth, -1);
  for (NodeId n = std::clamp(static_cast<NodeId>(plot.across.low), 0, graph.node_count()); n < graph.node_count();) {
    NodeId end = n;
    while (end < graph.node_count() && kind_of(graph, end) == kind_of(graph, n)) ++end;
    const float a = std::max(std::round(plot.x_of(n)), plot.x0),
                b = std::min(std::max(std::round(plot.x_of(end)), a + 1), plot.x1);
    for (float x = a; x < b; ++x) seen[static_cast<std::size_t>(x)] = kind_of(graph, n);
    n = end;
  }
  return seen;
}

TEST(PhaseStrip, EveryColumnShowsTheLastRunThatBeginsThere) {
  std::mt19937 random(7);
  for (const NodeId nodes : {1, 3, 40, 700, 2500}) {
    MadePlan made = make_random_plan(static_cast<unsigned>(nodes), nodes);
    Phase phase = Phase::forward;
    for (Node& node : made.plan.graph.nodes) {
      if (random() % 3 == 0) phase = static_cast<Phase>(random() % 3);
      node.origin.phase = phase;
      node.origin.clone = random() % 9 == 0;
    }
    const PlanModel model(std::make_shared<const Plan>(made.plan), made.curve);
    for (const double share : {1.0, 0.31, 0.02}) {
      const double from = nodes * (1 - share) * 0.6;
      const Plot plot = make_plot(10, 5, kWidth - 10, 80, {from, from + nodes * share}, {0, 1});
      AxisPicture picture(model, plot);
      ImGuiHost host;
      std::vector<std::uint32_t> pixels(static_cast<std::size_t>(kWidth) * kHeight);
      const ImDrawData& drawn = host.frame(picture, kWidth, kHeight, 1.0 / 60);
      EXPECT_LT(drawn.TotalVtxCount, 4 * kWidth + 2000) << nodes;  // however many runs there are
      host.rasterize_to({pixels.data(), kWidth, kHeight});
      const std::vector<int> expected = columns_by_runs(model.graph(), plot);
      const std::uint32_t* row = pixels.data() + static_cast<std::size_t>(plot.y1 + 3) * kWidth;  // above the letters
      for (int x = 0; x < kWidth; ++x) {
        const Colour colour = expected[x] < 0 ? colours::kCanvas : phase_colour(expected[x]);
        ASSERT_EQ(row[x], to_imgui(colour)) << nodes << " nodes, share " << share << ", column " << x;
      }
    }
  }
}

}  // namespace
}  // namespace tapedeck::viewer
