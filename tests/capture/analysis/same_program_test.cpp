// Tests the walk that compares programs: the differences that it reports, their order, and the effect of allowing a
// difference. Expected differences are written by hand.
#include <tapedeck/capture/analysis/same_program.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

using Kind = ProgramDifference::Kind;

struct Seen {
  Kind kind;
  NodeId node;
  std::int32_t index;
  std::string field;
  std::size_t other;
  bool operator==(const Seen& o) const {
    return kind == o.kind && node == o.node && index == o.index && field == o.field && other == o.other;
  }
};

// Lists all differences of the programs. Each is allowed, so that the walk goes on.
std::vector<Seen> differences(const std::vector<std::string>& texts) {
  std::vector<Graph> parsed;
  for (const std::string& text : texts) parsed.push_back(parse(text, "test"));
  std::vector<const Graph*> graphs;
  for (const Graph& g : parsed) graphs.push_back(&g);
  std::vector<Seen> seen;
  EXPECT_TRUE(same_program(graphs, [&](const ProgramDifference& d) {
    seen.push_back({d.kind, d.first().id, d.index, d.field ? d.field->name : "", d.other});
    return true;
  }));
  const bool same = same_program(graphs, [](const ProgramDifference&) { return false; });
  EXPECT_EQ(same, seen.empty());
  return seen;
}

std::string graph(const std::string& body) { return "graph g(%x: f32[4], %y: f32[4]) state(%w: f32[4]) {\n" + body + "}\n"; }

TEST(SameProgram, NamesNotesAndOrderEdgesAreNoDifferences) {
  EXPECT_EQ(differences({graph("  %a: f32[4] = exp(%x)\n  %b: f32[4] = neg(%y)\n  return r=%b\n"),
                         graph("  %c: f32[4] = exp(%x) [path=\"m\"]\n  %d: f32[4] = neg(%y) [after=[%c]]\n  return r=%d\n")}),
            std::vector<Seen>{});
}

TEST(SameProgram, ReportsEachKindOfDifferenceOfANode) {
  const auto one = [](const std::string& a, const std::string& b) { return differences({graph(a), graph(b)}); };
  EXPECT_EQ(one("  %a: f32[4] = exp(%x)\n  return r=%a\n", "  %a: f32[4] = neg(%x)\n  return r=%a\n"),
            (std::vector<Seen>{{Kind::op, 0, kNone, "", 1}}));
  EXPECT_EQ(one("  %a: f32[4] = sub(%x, %y)\n  return r=%a\n", "  %a: f32[4] = sub(%x, %x)\n  return r=%a\n"),
            (std::vector<Seen>{{Kind::operand, 0, 1, "", 1}}));
  EXPECT_EQ(one("  %a: f32[8] = concat(%x, %y) {axis=0}\n  return r=%a\n",
                "  %a: f32[12] = concat(%x, %y, %y) {axis=0}\n  return r=%a\n"),
            (std::vector<Seen>{{Kind::operand_count, 0, kNone, "", 1}}));
  EXPECT_EQ(one("  %a: f32[2,2] = reshape(%x) {shape=[2,2]}\n  return r=%a\n",
                "  %a: f32[4,1] = reshape(%x) {shape=[4,1]}\n  return r=%a\n"),
            (std::vector<Seen>{{Kind::field, 0, kNone, "shape", 1}, {Kind::result_type, 0, 0, "", 1}}));
  EXPECT_EQ(
      one("  %a: f32[] = constant() {value=1.0}\n  return r=%a\n", "  %a: f32[] = constant() {value=2.0}\n  return r=%a\n"),
      (std::vector<Seen>{{Kind::literal, 0, kNone, "", 1}}));
}

TEST(SameProgram, ReportsDifferencesOfTheWholeGraphBeforeItsNodes) {
  EXPECT_EQ(differences({graph("  %a: f32[4] = exp(%x)\n  return r=%a\n  update %w = %a\n"),
                         graph("  %a: f32[4] = neg(%x)\n  %b: f32[4] = neg(%a)\n  return s=%b\n")}),
            (std::vector<Seen>{{Kind::node_count, kNone, kNone, "", 1},
                               {Kind::updates, kNone, kNone, "", 1},
                               {Kind::outputs, kNone, kNone, "", 1},
                               {Kind::output_names, kNone, kNone, "", 1},
                               {Kind::op, 0, kNone, "", 1}}));
}

TEST(SameProgram, ComparesMoreThanTwoProgramsWithTheFirst) {
  const auto reshaped = [](int n) {
    const std::string size = std::to_string(n);
    return "graph g(%x: f32[" + size + ",2]) {\n  %a: f32[" + std::to_string(2 * n) + "] = reshape(%x) {shape=[" +
           std::to_string(2 * n) + "]}\n  return r=%a\n}\n";
  };
  EXPECT_EQ(differences({reshaped(3), reshaped(3), reshaped(5)}),
            (std::vector<Seen>{
                {Kind::operand_type, 0, 0, "", 2}, {Kind::field, 0, kNone, "shape", 2}, {Kind::result_type, 0, 0, "", 2}}));
}

TEST(SameProgram, ComparesOperandsByTheirClasses) {
  const Graph a = parse(graph("  %a: f32[4] = sub(%x, %y)\n  return r=%a\n"), "a");
  const Graph b = parse(graph("  %a: f32[4] = sub(%w, %y)\n  return r=%a\n"), "b");
  const std::vector<std::int32_t> apart = {0, 1, 2, 3}, alike = {0, 1, 0, 3};
  const auto none = [](const ProgramDifference&) { return false; };
  const ProgramSide of_classes[] = {{&a, 0, alike}, {&b, 0, alike}}, of_values[] = {{&a, 0, apart}, {&b, 0, apart}};
  EXPECT_TRUE(same_node(of_classes, none));
  EXPECT_FALSE(same_node(of_values, none));
}

TEST(SameProgram, ReportsRegionsThatDiffer) {
  const auto loop = [](const std::string& op) {
    return "graph g(%x: f32[4], %c: bool[]) {\n  %y: f32[4] = cond(%c, %x) (%a: f32[4]) {\n    %b: f32[4] = " + op +
           "(%a)\n    return %b\n  } (%a: f32[4]) {\n    return %a\n  }\n  return r=%y\n}\n";
  };
  EXPECT_EQ(differences({loop("exp"), loop("exp")}), std::vector<Seen>{});
  EXPECT_EQ(differences({loop("exp"), loop("neg")}), (std::vector<Seen>{{Kind::region, 0, 0, "", 1}}));
}

}  // namespace
}  // namespace tapedeck
