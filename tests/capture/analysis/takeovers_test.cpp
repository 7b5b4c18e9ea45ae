// Tests the rule of takeovers: which results are computed in the bytes of a dying operand. Expected pairs are written by
// hand.
#include <tapedeck/capture/analysis/takeovers.h>

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tapedeck {
namespace {

using Pairs = std::vector<std::pair<ValueId, ValueId>>;

// The pairs (operand, result) that happen if the operands in `dying` die at this node.
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
  // The second pair gives 11 no bytes, because 10 has the bytes of 1 already. So the third pair may serve 11.
  EXPECT_EQ(taken({{1, 10}, {1, 11}, {2, 11}}, {1, 2}), (Pairs{{1, 10}, {2, 11}}));
}

}  // namespace
}  // namespace tapedeck
