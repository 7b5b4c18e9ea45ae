// Tests the picture of tradeoff(): a curve through the plans that fit, the bound, the axes and the legend.
#include <tapedeck/capture/explain/tradeoff_svg.h>

#include <gtest/gtest.h>

#include <string>

namespace tapedeck {
namespace {

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

Tradeoff example() {
  constexpr std::int64_t kMiB = 1 << 20;
  Tradeoff t;
  t.floor_bytes = 4 * kMiB;
  t.keep_all_peak_bytes = 8 * kMiB;
  t.keep_all_cost_us = 100;
  t.costs = "estimate";
  t.complete = true;
  const TradeoffPoint low{4 * kMiB, true, 4 * kMiB, 150, 1.5, 120, "", 3}, high{8 * kMiB, true, 8 * kMiB, 100, 1, 100, "", 0};
  TradeoffPoint misfit = low;
  misfit.feasible = false;
  TradeoffCurve none{Strategy::none, "none", {misfit, high}}, regions{Strategy::regions, "regions", {misfit, misfit}};
  t.curves = {{Strategy::greedy, "greedy", {low, high}}, none, regions};
  return t;
}

TEST(TradeoffSvg, DrawsACurveThroughThePlansThatFitAndTheBound) {
  const std::string svg = tradeoff_svg(example(), "a <step>");
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_EQ(count(svg, "<circle "), 3);  // two of greedy, one of none
  EXPECT_EQ(count(svg, "greedy: budget 4194304 bytes, peak 4194304 bytes, cost 150 us, 1.50000 of keep-all"), 1);
  EXPECT_EQ(count(svg, ">greedy<"), 1);
  EXPECT_EQ(count(svg, ">regions (no plan fits)<"), 1);
  EXPECT_EQ(count(svg, "stroke-dasharray=\"7 5\""), 2);  // the bound, and its line in the legend
  EXPECT_EQ(count(svg, "a &lt;step&gt;: cost of a step"), 1);
  EXPECT_EQ(count(svg, "budget in MiB"), 1);
  EXPECT_EQ(count(svg, ">50 %<"), 1);
  EXPECT_EQ(count(svg, "interrupted"), 0);
}

TEST(TradeoffSvg, SaysThatPointsAreMissing) {
  Tradeoff part = example();
  part.complete = false;
  EXPECT_EQ(count(tradeoff_svg(part, "g"), "interrupted, so points are missing"), 1);
}

// No finite picture has a nan in it.
TEST(TradeoffSvg, IsWellFormedWhereThereIsNothingToShow) {
  for (const std::string& svg :
       {tradeoff_svg({}, ""), tradeoff_svg({0, 0, 0, "", {{Strategy::none, "none", {{}}}}, true}, "g")}) {
    EXPECT_EQ(count(svg, "nan") + count(svg, "inf"), 0) << svg;
    EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
  }
}

}  // namespace
}  // namespace tapedeck
