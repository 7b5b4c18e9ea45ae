// Tests that the index finds the gaps across a stage that a walk over all gaps finds.
#include <tapedeck/capture/planner/schedules/gap_index.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tapedeck {
namespace {

struct Interval {
  std::int32_t number;
  NodeId from, to;
};

std::vector<std::int32_t> found(const GapIndex& index, NodeId stage) {
  std::vector<std::int32_t> numbers;
  index.each_across(stage, [&](std::int32_t number) { numbers.push_back(number); });
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::int32_t> walked(const std::vector<Interval>& all, NodeId stage) {
  std::vector<std::int32_t> numbers;
  for (const Interval& i : all)
    if (i.from <= stage && stage < i.to) numbers.push_back(i.number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(GapIndex, FindsWhatAWalkFinds) {
  for (const NodeId stages : {1, 2, 3, 7, 8, 9, 64, 100}) {
    std::mt19937 random(static_cast<unsigned>(stages));
    const auto below = [&](NodeId n) { return static_cast<NodeId>(random() % static_cast<unsigned>(n)); };
    GapIndex index(stages);
    std::vector<Interval> all;
    for (std::int32_t step = 0; step < 300; ++step) {
      if (all.empty() || random() % 3 > 0) {
        const NodeId from = below(stages), to = from + 1 + below(stages - from);
        all.push_back({step, from, to});
        index.add(step, from, to);
      } else {
        const std::size_t gone = random() % all.size();
        index.remove(all[gone].number, all[gone].from);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(gone));
      }
      const NodeId stage = below(stages);
      ASSERT_EQ(found(index, stage), walked(all, stage)) << stages << " stages, step " << step << ", across stage " << stage;
    }
  }
}

TEST(GapIndex, VisitsInTheOrderInWhichGapsBegin) {
  GapIndex index(10);
  index.add(0, 6, 9);
  index.add(1, 2, 8);
  index.add(2, 4, 7);
  index.add(3, 3, 5);  // ends before
  std::vector<std::int32_t> numbers;
  index.each_across(6, [&](std::int32_t number) { numbers.push_back(number); });
  EXPECT_EQ(numbers, (std::vector<std::int32_t>{1, 2, 0}));
}

}  // namespace
}  // namespace tapedeck
