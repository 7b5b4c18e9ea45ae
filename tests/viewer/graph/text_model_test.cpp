// Tests the text of graphs as the viewer shows it: lines and nodes, words, differences, steps.
#include <tapedeck/tests/capture/planner/graph_for_passes.h>
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/planner/pass_steps.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/graph/pass_texts.h>
#include <tapedeck/viewer/graph/text_rows.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace tapedeck::viewer {
namespace {

constexpr const char* kLoop = R"(graph g(%x: f32[4]) state(%w: f32[4], %count: i64[] [role=counter]) {
  %h: f32[4] = mul(%x, %w)                           [path="fc1"]
  %s: f32[4], %all: f32[3,4] = scan(%h) {length=3} (%a: f32[4]) {
    %b: f32[4] = exp(%a)
    return %b, %b
  }
  %"a b": f32[4] = add(%s, %s)
  %6: f32[4] = neg(%"a b")
  return %6
  update %w = %h
}
)";

std::string word_text(std::string_view line, const Word& word) {
  return std::string(line.substr(word.begin, word.end - word.begin));
}

std::string words_as_text(std::string_view line) {
  static const char* const names[kWordKindCount] = {"plain", "keyword", "value", "op", "type", "number", "string", "note"};
  std::string text;
  for (const Word& word : words_of(line))
    text += std::string(names[static_cast<int>(word.kind)]) + "<" + word_text(line, word) + "> ";
  return text;
}

TEST(GraphText, EveryLineKnowsItsNode) {
  const GraphText text(kLoop);
  ASSERT_EQ(text.lines(), 11);
  const std::vector<NodeId> expected = {kNone, 0, 1, 1, 1, 1, 2, 3, kNone, kNone, kNone};
  for (std::int32_t n = 0; n < text.lines(); ++n) {
    EXPECT_EQ(text.node_of(n), expected[static_cast<std::size_t>(n)]) << text.line(n);
    EXPECT_EQ(text.is_nested(n), n >= 3 && n <= 5) << n;
  }
  EXPECT_EQ(text.end_of_nodes(), 8);
  EXPECT_EQ(text.line_of(2), 6);
  std::string joined;
  for (std::int32_t n = 0; n < text.lines(); ++n) joined += std::string(text.line(n)) + "\n";
  EXPECT_EQ(joined, kLoop);
  for (const char* other : {"", "\n", "graph", "graph g() {", "%", "}\n}\n", "  return"})
    EXPECT_EQ(GraphText(other).nodes(), 0) << other;
}

// The oracle is the graph itself: the line of every node begins with the names of its results.
TEST(GraphText, LinesOfALargeGraphAreThoseOfItsNodes) {
  const Graph graph = parse(training_graph(40));
  const GraphText text(print(graph));
  ASSERT_EQ(text.nodes(), graph.node_count());
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const ValueId v = graph.nodes[n].first_output;
    const std::string word = word_of_value(graph, v);
    if (text.line(text.line_of(n)).starts_with("  _:")) continue;  // nobody reads it
    EXPECT_TRUE(text.line(text.line_of(n)).starts_with("  " + word + ":")) << text.line(text.line_of(n));
    EXPECT_EQ(line_defining(text, word), text.line_of(n));
    EXPECT_EQ(value_named(graph, word), v);
  }
  for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v)
    EXPECT_TRUE(has_word(text.line(line_defining(text, word_of_value(graph, v))), word_of_value(graph, v)));
  EXPECT_EQ(value_named(graph, "%nobody"), kNone);
  EXPECT_EQ(value_named(graph, "h1"), kNone);
  EXPECT_EQ(value_named(graph, "%\"h1"), kNone);
}

TEST(GraphText, WordsHaveTheirKinds) {
  EXPECT_EQ(words_as_text("graph g(%x: f32[4]) state(%n: i64[] [role=rng]) {"),
            "keyword<graph> op<g> value<%x> type<f32[4]> keyword<state> value<%n> type<i64[]> note<[role=rng]> ");
  EXPECT_EQ(words_as_text("  %h: f32[2,10] = sum(%x) {axes=[0,1], keepdims=false}   [twin=%y, path=\"a\"]"),
            "value<%h> type<f32[2,10]> op<sum> value<%x> plain<axes> number<0> number<1> plain<keepdims> "
            "keyword<false> note<[twin=> value<%y> note<, path=\"a\"]> ");
  EXPECT_EQ(words_as_text("  _: f32[] = opaque(%\"a b\") {us=-1.5e-3, name=\"x\"}"),
            "plain<_> type<f32[]> op<opaque> value<%\"a b\"> plain<us> number<-1.5e-3> plain<name> string<\"x\"> ");
  EXPECT_EQ(words_as_text("  return loss=%l"), "keyword<return> plain<loss> value<%l> ");
  EXPECT_EQ(words_as_text("  update %w = %h"), "keyword<update> value<%w> value<%h> ");
  EXPECT_EQ(words_as_text("an \"open string"), "");
}

TEST(GraphText, AWordIsNoPartOfAnother) {
  EXPECT_TRUE(has_word("  %a: f32[] = exp(%h1)", "%h1"));
  EXPECT_FALSE(has_word("  %a: f32[] = exp(%h12)", "%h1"));
  EXPECT_FALSE(has_word("  %a: f32[] = exp(%h1.x)", "%h1"));
  EXPECT_TRUE(has_word("%h12, %h1", "%h1"));
}

std::string diff_as_text(const std::string& before, const std::string& after, Numbers numbers = Numbers::shift) {
  const GraphText a(before), b(after);
  std::string text;
  for (const DiffLine& line : diff_texts(a, b, numbers).lines) {
    const bool old = line.kind == LineKind::removed || line.kind == LineKind::was || line.kind == LineKind::moved_from;
    text += std::string(1, " -+~~<>"[static_cast<int>(line.kind)]) +
            std::string(old ? a.line(line.before) : b.line(line.after)) + "\n";
  }
  return text;
}

TEST(TextDiff, NamesTellWhatChanged) {
  EXPECT_EQ(
      diff_as_text(
          "graph g(%x: f32[]) {\n  %a: f32[] = exp(%x)\n  %b: f32[] = mul(%a, %one)\n  %c: f32[] = relu(%b)\n  return %c\n}\n",
          "graph g(%x: f32[]) {\n  %a: f32[] = exp(%x)\n  %c: f32[] = relu(%a)\n  %d: f32[] = neg(%c)\n  return %c\n}\n"),
      " graph g(%x: f32[]) {\n   %a: f32[] = exp(%x)\n-  %b: f32[] = mul(%a, %one)\n~  %c: f32[] = relu(%b)\n"
      "~  %c: f32[] = relu(%a)\n+  %d: f32[] = neg(%c)\n   return %c\n }\n");
  EXPECT_EQ(diff_as_text("graph g() {\n  %0: f32[] = full()\n  return %0\n}\n",
                         "graph g() {\n  %v0: f32[] = full()\n  return %v0\n}\n", Numbers::become_names),
            " graph g() {\n~  %0: f32[] = full()\n~  %v0: f32[] = full()\n~  return %0\n~  return %v0\n }\n");
  EXPECT_EQ(diff_as_text("graph g() {\n  %a: f32[] = f()\n  %b: f32[] = f()\n  %c: f32[] = f()\n  return %a\n}\n",
                         "graph g() {\n  %c: f32[] = f()\n  %a: f32[] = f()\n  %b: f32[] = f()\n  return %a\n}\n"),
            " graph g() {\n>  %c: f32[] = f()\n   %a: f32[] = f()\n   %b: f32[] = f()\n<  %c: f32[] = f()\n   return %a\n }\n");
  EXPECT_EQ(diff_as_text("", "graph g() {\n  return\n}\n"), "+graph g() {\n+  return\n+}\n");
}

// For any two texts, the old lines of the difference are the first text and the new ones are the second, in order.
TEST(TextDiff, HoldsBothTexts) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const auto made = [&] {
      std::string text = "graph g(%x: f32[]) {\n";
      const int nodes = static_cast<int>(random() % 20);
      for (int i = 0; i < nodes; ++i) {
        const int name = static_cast<int>(random() % 12);
        text += "  %" + (random() % 3 == 0 ? std::to_string(i) : "n" + std::to_string(name)) + ": f32[] = op" +
                std::to_string(random() % 3) + "(%x)\n";
      }
      return text + "  return %x\n}\n";
    };
    const GraphText a(made()), b(made());
    const TextDiff diff = diff_texts(a, b);
    std::string old_text, new_text;
    std::int32_t old_moved = 0, new_moved = 0;
    for (const DiffLine& line : diff.lines) {
      const bool same = line.kind == LineKind::same;
      if (same) {
        EXPECT_EQ(a.line(line.before), b.line(line.after));
      }
      if (same || line.kind == LineKind::removed || line.kind == LineKind::was || line.kind == LineKind::moved_from)
        old_text += std::string(a.line(line.before)) + "\n";
      if (same || line.kind == LineKind::added || line.kind == LineKind::is || line.kind == LineKind::moved_to)
        new_text += std::string(b.line(line.after)) + "\n";
      old_moved += line.kind == LineKind::moved_from;
      new_moved += line.kind == LineKind::moved_to;
    }
    EXPECT_EQ(old_text, a.text());
    EXPECT_EQ(new_text, b.text());
    EXPECT_EQ(old_moved, new_moved);
    EXPECT_EQ(old_moved, diff.moved);
    EXPECT_TRUE(diff_texts(a, a).empty());
  }
}

std::string long_graph(int nodes, int changed) {
  std::string text = "graph g(%x: f32[]) {\n";
  for (int i = 0; i < nodes; ++i) text += "  %n" + std::to_string(i) + ": f32[] = " + (i == changed ? "EXP" : "neg") + "(%x)\n";
  return text + "  return %x\n}\n";
}

TEST(TextRows, EqualLinesAreFoldedAndOpened) {
  const auto before = std::make_shared<const GraphText>(long_graph(50, -1)),
             after = std::make_shared<const GraphText>(long_graph(50, 20));
  const auto diff = std::make_shared<const TextDiff>(diff_texts(*before, *after));
  TextRows rows(before, after, diff, true);
  // A fold, three lines, the line as it was and as it is, three lines, a fold.
  ASSERT_EQ(rows.count(), 1 + 3 + 2 + 3 + 1);
  EXPECT_EQ(rows.rows()[0].folded, 18);  // the header and nodes 0 to 16
  EXPECT_EQ(rows.rows()[9].folded, 50 - 24 + 2);
  EXPECT_EQ(rows.next_change(-1, 1), 4);
  EXPECT_EQ(rows.next_change(4, 1), -1);
  EXPECT_EQ(rows.next_change(9, -1), 4);
  EXPECT_EQ(rows.find("exp"), std::vector<std::int32_t>{5});
  EXPECT_EQ(rows.find("EXP"), std::vector<std::int32_t>{5});
  EXPECT_TRUE(rows.find("Exp").empty());
  const std::int32_t row = rows.show_line(after->line_of(3));
  EXPECT_EQ(rows.line(rows.rows()[static_cast<std::size_t>(row)]), after->line(after->line_of(3)));
  EXPECT_EQ(rows.rows()[0].folded, 0);
  EXPECT_EQ(TextRows(before, after, nullptr, false).count(), after->lines());
  EXPECT_EQ(TextRows(before, after, diff, false).count(), after->lines() + 1);
  for (std::int32_t line = 0; line < after->lines(); ++line) EXPECT_GE(rows.show_line(line), 0) << line;
  EXPECT_EQ(rows.count(), after->lines() + 1);  // all open now
  EXPECT_EQ(rows.show_line(-1), -1);
  EXPECT_EQ(TextRows().count(), 0);
}

TEST(PassTexts, TheStepsAreThoseOfThePlanner) {
  const Graph captured = parse(test::kGraphForPasses);
  const Plan plan = make_plan(captured);
  const auto steps = with_plan(*pass_texts(captured, {}, nullptr), plan);
  ASSERT_GE(steps->size(), 4u);
  EXPECT_EQ(steps->front().record.name, "captured");
  EXPECT_EQ(steps->front().after->text(), print(captured));
  EXPECT_EQ(steps->back().record.name, "plan");
  EXPECT_EQ(steps->back().after->text(), print(plan.graph));
  std::map<std::string, std::string> changes;
  for (std::size_t i = 1; i < steps->size(); ++i) {
    const StepText& step = (*steps)[i];
    EXPECT_EQ(step.before, (*steps)[i - 1].after);
    EXPECT_EQ(step.diff == nullptr, step.before->text() == step.after->text()) << step.record.name;
    EXPECT_EQ(step.after->nodes(), step.record.nodes_after) << step.record.name;
    EXPECT_FALSE(step.doc.empty());
    if (step.diff) changes[step.record.name] += won_nodes(step.record) + " nodes, " + change_text(step) + "; ";
  }
  EXPECT_EQ(changes["dead_code"], "-1 nodes, 1 line removed (-); ");
  EXPECT_EQ(changes["drop_copies"], "-1 nodes, 1 line removed (-), 2 changed (~); ");
  EXPECT_EQ(changes["cse"], "-1 nodes, 1 line removed (-), 1 changed (~); ");
  EXPECT_EQ(std::count(changes.begin(), changes.end(), std::pair<const std::string, std::string>("plan", "")), 0);
  const std::string csv = steps_csv(*steps);
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), steps->size() + 1);
}

}  // namespace
}  // namespace tapedeck::viewer
