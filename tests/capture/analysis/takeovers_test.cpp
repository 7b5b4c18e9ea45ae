// The rule of takeovers in place, pair by pair.
#include <tapedeck/capture/analysis/takeovers.h>

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tapedeck {
namespace {

using Pairs = std::vector<std::pair<ValueId, ValueId>>;

// The pairs that happen where the operands in `dying` give their bytes away.
Pairs taken(const Pairs& declared, const std::vector<ValueId>& dying) {
  std::vector<RootPair> pairs;
  for (const auto& [from, to] : declared) pairs.push_back({from, to});
  Pairs happened;
  take_over_in_place(
      std::span<const RootPair>(pairs), [&](ValueId v) { return std::find(dying.begin(), dying.end(), v) != dying.end(); },
      [&](const RootPair& pair) { happened.emplace_back(pair.from, pair.to); });
  return happened;
}

TEST(Takeovers, OnlyDyingOperandsGiveTheirBytes) {
  EXPECT_EQ(taken({{1, 10}, {2, 10}}, {1, 2}), (Pairs{{1, 10}}));
  EXPECT_EQ(taken({{1, 10}, {2, 10}}, {2}), (Pairs{{2, 10}}));
  EXPECT_EQ(taken({{1, 10}, {2, 10}}, {}), (Pairs{}));
}

TEST(Takeovers, BytesAreGivenOnceAndResultsServedOnce) {
  EXPECT_EQ(taken({{1, 10}, {1, 11}}, {1}), (Pairs{{1, 10}}));
  EXPECT_EQ(taken({{1, 10}, {2, 11}}, {1, 2}), (Pairs{{1, 10}, {2, 11}}));
  // 11 was not served by the pair that came too late for the bytes of 1.
  EXPECT_EQ(taken({{1, 10}, {1, 11}, {2, 11}}, {1, 2}), (Pairs{{1, 10}, {2, 11}}));
}

}  // namespace
}  // namespace tapedeck
