// Tests instances that split into independent parts. In one placement, the small parts are searched exactly and the large
// parts are improved by local search.
#include <tapedeck/capture/planner/place/place.h>
#include <tapedeck/capture/planner/place/split_problem.h>

#include <tapedeck/tests/capture/planner/place/instances.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace tapedeck {
namespace {

// Several cut-up rectangles, one after the other in time. Their heights differ, so that the highest one changes while they
// are improved.
std::vector<Tenant> stretches(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tenant> all;
  std::int32_t from = 0;
  for (int k = 0; k < 5; ++k) {
    const int pieces = k % 2 ? 14 + static_cast<int>(random() % 6) : 40 + static_cast<int>(random() % 30);
    const std::int32_t steps = 12 + static_cast<std::int32_t>(random() % 12);
    for (Tenant b :
         test::cut_up(static_cast<unsigned>(random()), pieces, 900 + static_cast<std::int64_t>(random() % 120), steps)) {
      b.birth += from;
      b.death += from;
      all.push_back(b);
    }
    from += steps;
  }
  return all;
}

constexpr std::int64_t kSomePairs = 400;  // some parts have fewer pairs, others more

TEST(PlaceMixedParts, EndsAreWhatOffsetsNeedWhateverTheWork) {
  constexpr unsigned seeds = test::seeds(40);
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const std::vector<Tenant> buffers = stretches(seed);
    for (const std::int64_t work : {200, 2'000, 12'000, 50'000}) {
      PlaceOptions options;
      options.work = work;
      options.most_pairs = kSomePairs;
      std::int64_t last = std::numeric_limits<std::int64_t>::max();
      options.on_better = [&](std::int64_t end, double) {
        EXPECT_LT(end, last);
        last = end;
      };
      const Offsets placed = place(buffers, options);
      ASSERT_EQ(test::judge(buffers, placed), "") << "seed " << seed << ", work " << work;
      EXPECT_EQ(placed.end, last);
      EXPECT_GE(placed.end, test::most_needed(buffers));
    }
  }
}

TEST(PlaceMixedParts, EqualWorkGivesEqualAnswers) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const std::vector<Tenant> buffers = stretches(seed);
    PlaceOptions options;
    options.work = 20'000;
    options.most_pairs = kSomePairs;
    const Offsets one = place(buffers, options);
    options.threads = 3;
    const Offsets three = place(buffers, options);
    EXPECT_EQ(one.offsets, three.offsets) << "seed " << seed;
    EXPECT_EQ(one.work, three.work);
  }
}

// There are few pairs, but so many buffers that a search would need too much memory. So local search handles this part, even
// with little work.
TEST(PlaceMixedParts, AVeryLongChainIsClimbedNotSearched) {
  std::vector<Tenant> buffers;
  for (std::int32_t i = 0; i < 12'000; ++i) buffers.push_back({64 + i * 7919 % 4096, 64, i, i + 1 + i * 31 % 6});
  EXPECT_FALSE(split(make_problem(buffers)).front().is_searchable());
  PlaceOptions options;
  options.work = place_steps(300'000, buffers.size());
  ASSERT_LT(options.work, 12'000);
  const Offsets greedy = place(buffers), placed = place(buffers, options);
  EXPECT_GT(greedy.end, greedy.bound) << "nothing to be won";
  EXPECT_GT(placed.work, 0);
  EXPECT_LE(placed.end, greedy.end);
}

}  // namespace
}  // namespace tapedeck
