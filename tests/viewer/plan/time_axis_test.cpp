// Tests the axis of time: nodes and positions there and back, nodes that take no time, and that columns leave no node out.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/viewer/plan/level_of_detail.h>
#include <tapedeck/viewer/plan/time_axis.h>
#include <tapedeck/viewer/words/ticks.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace tapedeck::viewer {
namespace {

TEST(TimeAxis, CountsNodesWithoutTimes) {
  using Us = std::vector<double>;
  for (const TimeAxis& axis : {TimeAxis(), TimeAxis(Us{}), TimeAxis(Us{0, 0, 0})}) {
    EXPECT_EQ(axis.unit(), TimeUnit::nodes);
    EXPECT_EQ(axis.at(2.5), 2.5);
    EXPECT_EQ(axis.node_at(2.5), 2.5);
    EXPECT_EQ(axis.least_size(), 1);
  }
}

TEST(TimeAxis, ANodeIsAsWideAsItTakesLong) {
  const TimeAxis axis(std::vector<double>{4, 0, 1, 0, 0, 3, 0});
  EXPECT_EQ(axis.unit(), TimeUnit::us);
  EXPECT_EQ(axis.at(0), 0);
  EXPECT_EQ(axis.at(0.5), 2);
  EXPECT_EQ(axis.at(1), 4);
  EXPECT_EQ(axis.at(2), 4);  // node 1 takes no time
  EXPECT_EQ(axis.at(5.5), 6.5);
  EXPECT_EQ(axis.at(7), 8);
  EXPECT_EQ(axis.at(100), 8);
  EXPECT_EQ(axis.at(-3), 0);
  EXPECT_EQ(axis.node_at(2), 0.5);
  EXPECT_EQ(axis.node_at(4), 2);  // of the nodes that begin there, the one that takes time
  EXPECT_EQ(axis.node_at(6.5), 5.5);
  EXPECT_EQ(axis.node_at(8), 7);
  EXPECT_EQ(axis.node_at(-1), 0);
}

TEST(TimeAxis, PositionsGoThereAndBack) {
  std::mt19937 random(1);
  std::vector<double> us;
  for (int i = 0; i < 300; ++i) us.push_back(random() % 3 == 0 ? 0 : random() % 1000 * 0.37);
  const TimeAxis axis(us);
  for (int i = 0; i < 1000; ++i) {
    const double position = (random() % 100000) / 100000.0 * axis.at(300);
    EXPECT_NEAR(axis.at(axis.node_at(position)), position, 1e-6);
  }
  for (std::size_t n = 0; n < us.size(); ++n)
    if (us[n] > 0) {
      EXPECT_NEAR(axis.node_at(axis.at(static_cast<double>(n) + 0.5)), static_cast<double>(n) + 0.5, 1e-6);
    }
}

// At any zoom, every node is in a column, so that a peak never falls between pixels.
TEST(TimeAxis, ColumnsLeaveNoNodeOut) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> us;
    const NodeId nodes = 1 + static_cast<NodeId>(random() % 60);
    for (NodeId i = 0; i < nodes; ++i) us.push_back(random() % 2 == 0 ? 0 : 1 + random() % 9);
    for (const TimeAxis& axis : {TimeAxis(us), TimeAxis()}) {
      const int columns = 1 + static_cast<int>(random() % 80);
      const double step = axis.at(nodes) / columns;
      std::vector<bool> seen(static_cast<std::size_t>(nodes));
      for (int c = 0; c < columns; ++c) {
        const auto [first, end] = axis.nodes_in(c * step, c == columns - 1 ? axis.at(nodes) : (c + 1) * step, nodes);
        ASSERT_LT(first, end);
        ASSERT_GE(first, 0);
        ASSERT_LE(end, nodes);
        for (NodeId n = first; n < end; ++n) seen[static_cast<std::size_t>(n)] = true;
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0) << "nodes " << nodes << " columns " << columns;
    }
  }
  EXPECT_EQ(TimeAxis(std::vector<double>{1, 2}).nodes_in(0, 1, 0), std::pair(0, 0));
}

// On an axis of microseconds, too, every rectangle in view is drawn, and lies where its nodes lie.
TEST(TimeAxis, NothingInViewIsInvisible) {
  const MadePlan made = make_random_plan(5, 120);
  const PlanModel model(std::make_shared<const Plan>(made.plan), made.curve);
  std::vector<double> us;
  for (int i = 0; i < 120; ++i) us.push_back(i % 4 == 0 ? 0 : i);
  const TimeAxis axis(us);
  PlanView view = model.home();
  view.time = axis.range_of(view.time);
  const LodFrame frame = make_lod(model.rects(), view, 333, 111, axis);
  for (const PlanRect& r : model.rects()) {
    const double x = axis.at(r.begin) / view.time.size() * 333;
    const double y = 111 - static_cast<double>(r.address + r.bytes) / view.address.size() * 111;
    EXPECT_GE(frame.hit(std::min(static_cast<int>(std::lround(x)), 332), std::min(static_cast<int>(std::lround(y)), 110)), 0)
        << r.value;
  }
}

TEST(TimeAxis, TicksHaveTheUnitOfTheWholeStep) {
  EXPECT_EQ(time_ticks(0, 500, 500, 5).unit, "us");
  const TimeTicks ms = time_ticks(0, 20000, 20000, 5);
  EXPECT_EQ(ms.unit, "ms");
  ASSERT_EQ(ms.ticks.size(), 5u);
  EXPECT_EQ(ms.ticks[1].label, "5");
  EXPECT_EQ(ms.ticks[1].at, 5000);
  const TimeTicks zoomed = time_ticks(1000, 1500, 20000, 5);
  EXPECT_EQ(zoomed.unit, "ms");
  EXPECT_EQ(zoomed.ticks.back().label, "1.5");
  EXPECT_EQ(time_ticks(0, 3e6, 3e6, 4).unit, "s");
}

}  // namespace
}  // namespace tapedeck::viewer
