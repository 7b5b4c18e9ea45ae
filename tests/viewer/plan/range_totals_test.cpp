// The totals of a range of nodes, against sets of what is alive, node by node.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/plan/range_totals.h>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <tuple>

namespace tapedeck::viewer {
namespace {

using Rect = std::tuple<ValueId, NodeId, RoleClass, std::int64_t>;  // value, node, role, bytes

std::set<Rect> alive_in_arena(const PlanModel& model, NodeId n) {
  std::set<Rect> alive;
  for (const PlanRect& r : model.alive(n))
    if (r.address >= model.external_bytes()) alive.insert({r.value, r.node, r.role, r.bytes});
  return alive;
}

// The births of the second set after the first; the deaths are those of the sets exchanged.
void count_new(const std::set<Rect>& before, const std::set<Rect>& after, std::int64_t RangeBytes::*bytes,
               std::int64_t RangeBytes::*count, RangeTotals* totals) {
  for (const Rect& rect : after) {
    if (before.count(rect)) continue;
    for (RangeBytes* sum : {&totals->all, &totals->roles[static_cast<std::size_t>(std::get<2>(rect))]}) {
      sum->*bytes += std::get<3>(rect);
      sum->*count += 1;
    }
  }
}

RangeTotals slow_totals(const PlanModel& model, const MadePlan& made, const NodeRange& range) {
  RangeTotals totals;
  totals.most = totals.least = made.curve[static_cast<std::size_t>(range.first)];
  totals.most_at = totals.least_at = range.first;
  for (NodeId n = range.first + 1; n <= range.last; ++n) {
    const std::int64_t bytes = made.curve[static_cast<std::size_t>(n)];
    if (bytes > totals.most) totals.most = bytes, totals.most_at = n;
    if (bytes < totals.least) totals.least = bytes, totals.least_at = n;
    const std::set<Rect> before = alive_in_arena(model, n - 1), after = alive_in_arena(model, n);
    count_new(before, after, &RangeBytes::born, &RangeBytes::born_count, &totals);
    count_new(after, before, &RangeBytes::died, &RangeBytes::died_count, &totals);
  }
  return totals;
}

void expect_same(const RangeBytes& found, const RangeBytes& slow) {
  EXPECT_EQ(found.born, slow.born);
  EXPECT_EQ(found.died, slow.died);
  EXPECT_EQ(found.born_count, slow.born_count);
  EXPECT_EQ(found.died_count, slow.died_count);
  EXPECT_EQ(found.at_last - found.at_first, found.born - found.died);
}

// The times of ranges that divide the step sum to that of the step.
TEST(RangeTotals, TimesSumToThatOfTheStep) {
  const std::shared_ptr<const PlanModel> model = PlanModel::of(make_plan(parse(training_graph(4), "test"), {}));
  const NodeId last = model->nodes() - 1;
  double sum = 0;
  for (NodeId n = 0; n <= last; n += 3) {
    const RangeTotals totals = range_totals(*model, {n, std::min(n + 2, last)});
    EXPECT_DOUBLE_EQ(totals.step_us, model->plan().cost_us);
    sum += totals.us;
  }
  EXPECT_DOUBLE_EQ(sum, model->plan().cost_us);
  EXPECT_EQ(range_totals(*model, {0, 0}).us, model->values().node_us(0));
}

TEST(RangeTotals, AgreeWithSetsOfWhatIsAlive) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const MadePlan made = make_random_plan(seed, 60);
    const PlanModel model(std::make_shared<const Plan>(made.plan), made.curve);
    std::mt19937 random(seed);
    for (int i = 0; i < 10; ++i) {
      NodeRange range{static_cast<NodeId>(random() % 60), static_cast<NodeId>(random() % 60)};
      if (range.last < range.first) std::swap(range.first, range.last);
      SCOPED_TRACE("seed " + std::to_string(seed) + ", nodes " + std::to_string(range.first) + " to " +
                   std::to_string(range.last));
      const RangeTotals found = range_totals(model, range), slow = slow_totals(model, made, range);
      EXPECT_EQ(found.all.at_first, made.curve[static_cast<std::size_t>(range.first)]);
      EXPECT_EQ(found.all.at_last, made.curve[static_cast<std::size_t>(range.last)]);
      EXPECT_EQ(found.most, slow.most);
      EXPECT_EQ(found.most_at, slow.most_at);
      EXPECT_EQ(found.least, slow.least);
      EXPECT_EQ(found.least_at, slow.least_at);
      expect_same(found.all, slow.all);
      for (int r = 0; r < kRoleClassCount; ++r)
        expect_same(found.roles[static_cast<std::size_t>(r)], slow.roles[static_cast<std::size_t>(r)]);
    }
  }
}

TEST(RangeTotals, OneNodeHasNoBirthsAndNoDeaths) {
  const MadePlan made = make_random_plan(3, 30);
  const PlanModel model(std::make_shared<const Plan>(made.plan), made.curve);
  const RangeTotals totals = range_totals(model, {7, 7});
  EXPECT_EQ(totals.all.born_count, 0);
  EXPECT_EQ(totals.all.died_count, 0);
  EXPECT_EQ(totals.all.at_first, totals.all.at_last);
  EXPECT_EQ(totals.most_at, 7);
}

}  // namespace
}  // namespace tapedeck::viewer
