// Tests the strategy `binomial`: its numbers against a table worked out by trying every stop, the runs of chains against these
// numbers, and blocks of graphs that are nearly chains.
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>

#include <tapedeck/capture/planner/rematerialize/binomial_schedule.h>
#include <tapedeck/capture/planner/rematerialize/chain_blocks.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

// By steps and slots: the fewest forward runs, as the least over all stops.
std::vector<std::vector<std::int64_t>> all_stops(int most_steps, int most_slots) {
  std::vector<std::vector<std::int64_t>> runs(most_steps + 1, std::vector<std::int64_t>(most_slots + 1, 0));
  for (int steps = 2; steps <= most_steps; ++steps) {
    runs[steps][1] = std::int64_t{steps} * (steps - 1) / 2;
    for (int slots = 2; slots <= most_slots; ++slots) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (int stop = 1; stop < steps; ++stop)
        least = std::min(least, stop + runs[steps - stop][slots - 1] + runs[stop][slots]);
      runs[steps][slots] = least;
    }
  }
  return runs;
}

TEST(BinomialSchedule, EqualsTheLeastOverAllStops) {
  const auto runs = all_stops(120, 12);
  for (int steps = 1; steps <= 120; ++steps) {
    for (int slots = 1; slots <= 12; ++slots) {
      ASSERT_EQ(fewest_forward_runs(steps, slots), runs[steps][slots]) << steps << " steps, " << slots << " slots";
      if (steps < 2 || slots < 2) continue;
      const std::int64_t stop = first_stop(steps, slots);
      ASSERT_GE(stop, 1);
      ASSERT_LT(stop, steps);
      ASSERT_EQ(stop + runs[steps - stop][slots - 1] + runs[stop][slots], runs[steps][slots]) << steps << ", " << slots;
    }
  }
}

// The published numbers: C(s + r, s) steps with s slots need r C(s + r, s) - C(s + r, s + 1) forward runs.
TEST(BinomialSchedule, KnowsThePublishedNumbers) {
  EXPECT_EQ(fewest_forward_runs(10, 3), 2 * 10 - 5);
  EXPECT_EQ(fewest_forward_runs(20, 3), 3 * 20 - 15);
  EXPECT_EQ(fewest_forward_runs(35, 4), 3 * 35 - 21);
  EXPECT_EQ(fewest_forward_runs(1, 5), 0);
  EXPECT_EQ(fewest_forward_runs(100'000'000, 10'000), 3 * 100'000'000LL - 10'003LL * 10'002 / 2);
}

struct Prepared {
  PassRunner passes;
  Graph graph;
  Facts facts;
  ChainBlocks chain;
  explicit Prepared(const Graph& captured)
      : graph(prepare(captured, &passes)), facts(collect_facts(graph)), chain(chain_blocks(facts)) {}
  Prepared(const Prepared&) = delete;
};

// A chain of n values, whose start lies in the inputs, is a chain of n + 1 steps whose start fills one slot more. Every step
// runs once in forward; the others are repeated.
TEST(Binomial, ChainsRunTheFewestNodesAgain) {
  for (const int layers : {1, 2, 5, 12, 37, 100}) {
    const Prepared p(test::chain(layers, 1000));
    ASSERT_EQ(p.chain.blocks.size(), static_cast<std::size_t>(layers));
    for (std::int64_t slots = 0; slots <= layers; ++slots) {
      const auto runs = runs_with_slots(p.facts, p.chain, slots, 1'000'000);
      ASSERT_TRUE(runs.has_value());
      EXPECT_EQ(static_cast<std::int64_t>(runs->size()), fewest_forward_runs(layers + 1, slots + 1) - layers)
          << layers << " layers, " << slots << " slots";
    }
  }
}

// No more than the slots, the value at hand, its operand and gradients are alive.
TEST(Binomial, ChainsPeakAtTheirSlots) {
  for (const int layers : {12, 40, 100}) {
    const Prepared p(test::chain(layers, 1000));
    for (std::int64_t slots = 1; slots < layers; slots += 1 + slots / 2) {
      RepeatedRuns runs(p.facts);
      runs.switch_to(*runs_with_slots(p.facts, p.chain, slots, 1'000'000));
      EXPECT_LE(runs.live_peak(), (slots + 3) * 1000) << layers << " layers, " << slots << " slots";
    }
  }
}

TEST(Binomial, PointsDescendInSlots) {
  const test::Chosen c(test::chain(100, 1000), "binomial");
  ASSERT_GE(c.choices.points.size(), 10u);
  for (std::size_t i = 1; i < c.choices.points.size(); ++i) {
    EXPECT_LT(c.choices.points[i].live_peak, c.choices.points[i - 1].live_peak);
    EXPECT_GE(c.cost_at(c.choices.points[i]), c.cost_at(c.choices.points[i - 1]));
  }
  EXPECT_LE(c.last_peak(), 8000);
}

TEST(Binomial, GivesUpWhereTooMuchWouldRunAgain) {
  const Prepared p(test::chain(100, 1000));
  EXPECT_FALSE(runs_with_slots(p.facts, p.chain, 0, 1000).has_value()) << "4950 runs";
}

// Two layers with a skip connection are one block: two values cross their inside. Its end is a cut again.
Graph residual(int blocks) {
  std::string text = "graph residual(%x: u8[1000]) {\n  %y0: u8[1000] = opaque(%x) {us=1.0}\n";
  for (int b = 1; b <= blocks; ++b) {
    const std::string i = std::to_string(b), before = std::to_string(b - 1);
    text += "  %a" + i + ": u8[1000] = opaque(%y" + before + ") {us=1.0}\n  %b" + i + ": u8[1000] = opaque(%a" + i +
            ") {us=1.0}\n  %y" + i + ": u8[1000] = opaque(%b" + i + ", %y" + before + ") {us=1.0}\n";
  }
  text += "  %g: u8[1000] = opaque(%y" + std::to_string(blocks) + ") {us=1.0} [phase=backward]\n";
  std::string g = "g";
  for (int b = blocks; b >= 1; --b) {
    const std::string i = std::to_string(b);
    text += "  %gb" + i + ": u8[1000] = opaque(%" + g + ", %b" + i + ") {us=1.0} [phase=backward]\n  %ga" + i +
            ": u8[1000] = opaque(%gb" + i + ", %a" + i + ") {us=1.0} [phase=backward]\n  %gy" + i + ": u8[1000] = opaque(%ga" +
            i + ", %y" + std::to_string(b - 1) + ") {us=1.0} [phase=backward]\n";
    g = "gy" + i;
  }
  return parse(text + "  return %" + g + "\n}\n", "residual");
}

TEST(Binomial, ResidualBlocksAreBlocks) {
  const Prepared p(residual(10));
  ASSERT_EQ(p.chain.blocks.size(), 11u);
  EXPECT_EQ(p.graph.value_name(p.chain.blocks[3].neck), "y3");
  EXPECT_EQ(p.chain.blocks[3].to_neck.size(), 3u);
  EXPECT_TRUE(p.chain.blocks[3].inside_is_read);
  const test::Chosen c(residual(30), "binomial");
  EXPECT_LT(c.last_peak(), c.keep_all_peak() / 5);
  test::expect_exact_points(residual(30), "binomial");
}

// Small values that cross every place, and nodes that cost little, make no difference to the blocks.
TEST(Binomial, SmallValuesAndCheapNodesStandAside) {
  std::string text =
      "graph aside(%x: u8[1000]) {\n  %n0: u8[4] = opaque(%x) {us=0.1}\n  %c0: u8[1000] = opaque(%x) {us=10.0}\n";
  for (int i = 1; i <= 10; ++i) {
    const std::string a = std::to_string(i), b = std::to_string(i - 1);
    text += "  %w" + a + ": u8[1000] = opaque(%c" + b + ") {us=10.0}\n  %n" + a + ": u8[4] = opaque(%n" + b + ", %w" + a +
            ") {us=0.1}\n  %c" + a + ": u8[1000] = opaque(%w" + a + ") {us=0.1}\n";
  }
  const Prepared p(
      parse(text + "  %g: u8[1000] = opaque(%c10, %n10, %w1) {us=1.0} [phase=backward]\n  return %g\n}\n", "aside"));
  EXPECT_EQ(p.chain.blocks.size(), 12u) << "%c0, and each %w with the cheap node before it, and the last %c";
}

TEST(Binomial, AGraphWithoutCutsOffersNothing) {
  // %x1 and %x2 are read to the end, so two values cross every place.
  std::string text =
      "graph wide(%x: u8[1000]) {\n  %x1: u8[1000] = opaque(%x) {us=1.0}\n  %x2: u8[1000] = opaque(%x) {us=1.0}\n";
  for (int i = 3; i <= 20; ++i)
    text += "  %x" + std::to_string(i) + ": u8[1000] = opaque(%x1, %x2, %x" + std::to_string(i - 1) + ") {us=1.0}\n";
  text += "  %g: u8[1000] = opaque(%x20, %x3) {us=1.0} [phase=backward]\n  return %g\n}\n";
  EXPECT_LE(test::Chosen(parse(text, "wide"), "binomial").choices.points.size(), 2u);
}

}  // namespace
}  // namespace tapedeck
