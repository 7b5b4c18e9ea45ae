// Tests the knapsack of the bound of cost against all subsets of a few items.
#include <tapedeck/capture/planner/solvers/charged_knapsack.h>
#include <tapedeck/capture/planner/solvers/least_cover.h>

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace tapedeck {
namespace {

double cheapest_subset(const std::vector<CoverItem>& items, std::int64_t bytes) {
  double least = std::numeric_limits<double>::infinity();
  for (unsigned set = 0; set < 1u << items.size(); ++set) {
    CoverItem sum;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (set >> i & 1) sum.cost += items[i].cost, sum.bytes += items[i].bytes;
    if (sum.bytes >= bytes) least = std::min(least, sum.cost);
  }
  return least;
}

struct Case {
  std::vector<CoverItem> items;
  std::int64_t bytes = 0;
};

Case random_case(std::mt19937& random) {
  Case c;
  std::int64_t total = 0;
  for (unsigned n = 1 + random() % 9; n > 0; --n) {
    c.items.push_back({static_cast<double>(random() % 20), static_cast<std::int64_t>(1 + random() % 30)});
    total += c.items.back().bytes;
  }
  c.bytes = 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(total));
  return c;
}

TEST(LeastCover, OfWholeItemsIsTheCheapestSubset) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    Case c = random_case(random);
    const double least = cheapest_subset(c.items, c.bytes), fraction = fractional_cover(&c.items, c.bytes).cost;
    EXPECT_LE(fraction, least + 1e-9) << i;
    EXPECT_NEAR(whole_cover(c.items, c.bytes, 10'000), least, 1e-9) << i;
    for (const int steps : {0, 1, 3}) {
      EXPECT_LE(whole_cover(c.items, c.bytes, steps), least + 1e-9) << i;
      EXPECT_GE(whole_cover(c.items, c.bytes, steps), fraction - 1e-9) << i;
    }
  }
}

TEST(LeastCover, ChargedForNothingItIsTheFractionalOne) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    Case c = random_case(random);
    ChargedKnapsack knapsack;
    for (const CoverItem& item : c.items) knapsack.add_node(item.cost, item.bytes);
    const Cover cover = fractional_cover(&c.items, c.bytes);
    const double charged = knapsack.least_cost(c.bytes, cover.per_byte);
    EXPECT_LE(charged, cover.cost + 1e-9) << i;
    EXPECT_GE(charged, cover.cost * 0.999) << i;
  }
}

}  // namespace
}  // namespace tapedeck
