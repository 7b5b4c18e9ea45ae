// Tests the groups of values and the colours of a plan: how many groups there are, that they are the same for every budget, and
// that the layers of the curve sum to it.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/plan/plan_colours.h>
#include <tapedeck/viewer/plan/value_groups.h>

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tapedeck::viewer {
namespace {

Graph graph_of(const std::string& text) { return parse(text, "test"); }

std::vector<std::string> group_names(const ValueGroups& groups) {
  std::vector<std::string> all;
  for (int g = 0; g < groups.count(); ++g) all.push_back(groups.name(g));
  return all;
}

// A graph with a node for each path.
Graph graph_with_paths(const std::vector<std::string>& paths) {
  std::string text = "graph g(%x: f32[8]) {\n";
  for (std::size_t i = 0; i < paths.size(); ++i)
    text += "  %v" + std::to_string(i) + ": f32[8] = relu(%" + (i == 0 ? "x" : "v" + std::to_string(i - 1)) + ")" +
            (paths[i].empty() ? "" : " [path=\"" + paths[i] + "\"]") + "\n";
  return graph_of(text + "  return %v" + std::to_string(paths.size() - 1) + "\n}\n");
}

TEST(ValueGroups, TheFirstLevelsThatGiveSixModules) {
  const ValueGroups flat(graph_with_paths({"a", "b", "c.0", "c.1", "d", "e", "f"}), ColourBy::module);
  EXPECT_EQ(group_names(flat), (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "others", "no module"}));
  const ValueGroups deep(graph_with_paths({"net.a", "net.b", "net.c.0", "net.c.1", "net.d", "net.e", "net.f", ""}),
                         ColourBy::module);
  EXPECT_EQ(group_names(deep),
            (std::vector<std::string>{"net.a", "net.b", "net.c", "net.d", "net.e", "net.f", "others", "no module"}));
  const ValueGroups few(graph_with_paths({"a", "b"}), ColourBy::module);
  EXPECT_EQ(group_names(few), (std::vector<std::string>{"a", "b", "others", "no module"}));
  const ValueGroups none(graph_with_paths({"", ""}), ColourBy::module);
  EXPECT_EQ(group_names(none), (std::vector<std::string>{"others", "no module"}));
}

TEST(ValueGroups, NoModuleHasMostOfTheBytesWhereALevelFurtherDividesIt) {
  std::vector<std::string> paths{"a", "b", "c", "d", "e"};
  for (int i = 0; i < 6; ++i) paths.push_back("net." + std::to_string(i));
  EXPECT_EQ(group_names(ValueGroups(graph_with_paths(paths), ColourBy::module)),
            (std::vector<std::string>{"a", "b", "c", "d", "e", "net.0", "net.1", "net.2", "net.3", "net.4", "net.5", "others",
                                      "no module"}));
}

TEST(ValueGroups, AnUpdateBelongsToTheModuleOfItsParameter) {
  const Graph graph = graph_of(
      "graph g(%x: f32[8]) state(%net.fc.weight: f32[8]) {\n  %a: f32[8] = mul(%x, %net.fc.weight) [path=\"net.fc\"]\n"
      "  %u: f32[8] = add(%net.fc.weight, %a) [phase=update, path=\"net.fc.weight\"]\n  return %a\n"
      "  update %net.fc.weight = %u\n}\n");
  const ValueGroups groups(graph, ColourBy::module);
  EXPECT_EQ(group_names(groups), (std::vector<std::string>{"net.fc", "others", "no module"}));
  EXPECT_EQ(groups.of_node(graph, 1), 0);
  EXPECT_EQ(groups.of_value(graph, 1), 0);
}

TEST(ValueGroups, NumberedNeighboursAreJoinedWhereThereAreTooMany) {
  std::vector<std::string> paths{"token"};
  for (int i = 0; i < 25; ++i) paths.push_back("block." + std::to_string(i) + ".attn");
  paths.push_back("head");
  const ValueGroups groups(graph_with_paths(paths), ColourBy::module);
  EXPECT_EQ(group_names(groups),
            (std::vector<std::string>{"token", "block.0-2", "block.3-5", "block.6-8", "block.9-11", "block.12-14",
                                      "block.15-17", "block.18-20", "block.21-23", "block.24", "head", "others", "no module"}));
}

TEST(ValueGroups, TheLargestKeepTheirColoursWhereNothingCanBeJoined) {
  std::vector<std::string> paths;
  for (char c = 'a'; c <= 't'; ++c) paths.push_back(std::string(1, c));
  paths.push_back("t");  // twice as many bytes as the others
  const Graph graph = graph_with_paths(paths);
  const ValueGroups groups(graph, ColourBy::module);
  ASSERT_EQ(groups.count(), ValueGroups::kMost + 2);
  EXPECT_EQ(groups.name(ValueGroups::kMost - 1), "t");
  EXPECT_EQ(groups.of_node(graph, 15), groups.others());  // "p"
}

TEST(ValueGroups, AValueBelongsToItsNodeAndAParameterToTheModuleOfItsName) {
  const Graph graph = graph_of(
      "graph g(%x: f32[8]) state(%fc.weight: f32[8], %steps: f32[8]) {\n  %a: f32[8] = mul(%x, %fc.weight) [path=\"fc\"]\n"
      "  %b: f32[8] = add(%a, %steps) [path=\"out.0\"]\n  return %b\n}\n");
  const ValueGroups by_module(graph, ColourBy::module), by_op(graph, ColourBy::op);
  const auto group = [&](const ValueGroups& groups, ValueId v) { return groups.name(groups.of_value(graph, v)); };
  EXPECT_EQ(group(by_module, 0), "no module");
  EXPECT_EQ(group(by_module, 1), "fc");
  EXPECT_EQ(group(by_module, 2), "no module");
  EXPECT_EQ(group(by_module, 3), "fc");
  EXPECT_EQ(group(by_module, 4), "out.0");
  EXPECT_EQ(group(by_op, 1), "given from outside");
  EXPECT_EQ(group(by_op, 3), "mul");
  EXPECT_EQ(group(by_op, 4), "add");
}

TEST(PlanColours, LayersSumToTheCurveToTheByte) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const MadePlan made = make_random_plan(seed, 60);
    const auto model = std::make_shared<const PlanModel>(std::make_shared<const Plan>(made.plan), made.curve);
    for (const ColourBy by : {ColourBy::role, ColourBy::module, ColourBy::op}) {
      std::shared_ptr<const ValueGroups> groups;
      if (by != ColourBy::role) groups = std::make_shared<const ValueGroups>(made.plan.graph, by);
      const PlanColours colours(model, groups);
      EXPECT_EQ(colours.by(), by);
      for (NodeId n = 0; n < model->nodes(); ++n) {
        std::int64_t sum = 0;
        for (const PlanLayer& layer : colours.layers()) sum += (*layer.curve)[static_cast<std::size_t>(n)];
        ASSERT_EQ(sum, model->curve()[static_cast<std::size_t>(n)]) << "node " << n << ", by " << colour_by_name(by);
      }
    }
  }
}

// A module has one colour, whatever the budget and the clones.
TEST(PlanColours, AGroupHasOneColourInEveryPlan) {
  const Graph captured = graph_of(training_graph(9));
  std::map<std::string, Colour> colour_of;
  std::set<std::string> html;
  for (const double percent : {100.0, 75.0, 60.0}) {
    PlanOptions options;
    options.budget_percent = percent;
    const auto model = PlanModel::of(make_plan(captured, options));
    const PlanColours colours(model, std::make_shared<const ValueGroups>(captured, ColourBy::module));
    for (std::size_t r = 0; r < model->rects().size(); ++r) {
      const auto [entry, is_new] = colour_of.emplace(colours.name_of(r), colours.colour_of(r));
      EXPECT_EQ(entry->second, colours.colour_of(r)) << colours.name_of(r);
    }
    for (const PlanLayer& layer : colours.layers()) EXPECT_EQ(colour_of.at(layer.name), colours.colour(layer));
  }
  for (const auto& [name, colour] : colour_of) EXPECT_TRUE(html.insert(html_colour(colour)).second) << name;
  EXPECT_EQ(colour_of.count("layer0"), 1u);
  EXPECT_EQ(colour_of.count("layer8"), 1u);
}

}  // namespace
}  // namespace tapedeck::viewer
