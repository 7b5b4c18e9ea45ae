// Tests the text of a small graph word by word, and that both forms stay valid whatever names hold.
#include <tapedeck/capture/explain/export_graph.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

Graph small() {
  return parse(R"(graph g(%x: f32[2]) state(%w: f32[2]) {
    %y: f32[2] = add(%x, %w) [path="fc", site="a.cpp:3"]
    %s: f32[] = sum(%y) {axes=[0], keepdims=false} [phase=backward]
    return %s
    update %w = %y
  })");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

TEST(ExportGraph, Dot) {
  const std::string text = graph_dot(small());
  for (const char* line :
       {"digraph \"g\" {\n", "  v0 [label=\"x\\nf32[2]\", shape=ellipse];\n", "  v1 [label=\"w\\nf32[2]\", shape=cylinder];\n",
        "  n0 [label=\"add\\nfc\", ", "  v0 -> n0 [label=\"x\\nf32[2]\"];\n", "  v1 -> n0 [",
        "  n0 -> n1 [label=\"y\\nf32[2]\"];\n", "  o0 [label=\"s\", ", "  n1 -> o0 [", "  n0 -> v1 [style=dashed, "})
    EXPECT_NE(text.find(line), std::string::npos) << line << "is not in\n" << text;
  EXPECT_EQ(text.substr(text.size() - 2), "}\n");
}

TEST(ExportGraph, JsonLines) {
  const std::vector<std::string> lines = lines_of(graph_jsonl(small()));
  std::string kinds;
  for (const std::string& line : lines) kinds += std::string(JsonDocument(line).root().find("kind")->as_string()) + " ";
  EXPECT_EQ(kinds, "graph input state node node output update ");
  const JsonDocument graph(lines[0]), node(lines[3]), sum(lines[4]);
  EXPECT_EQ(graph.root().find("schema")->as_string(), "tapedeck.graph/1");
  EXPECT_EQ(graph.root().find("nodes")->as_integer(), 2);
  EXPECT_EQ(node.root().find("op")->as_string(), "add");
  EXPECT_EQ(node.root().find("path")->as_string(), "fc");
  EXPECT_EQ(node.root().find("inputs")->size(), 2u);
  EXPECT_EQ(sum.root().find("phase")->as_string(), "backward");
  EXPECT_FALSE(sum.root().find("attributes")->find("keepdims")->as_bool());
  EXPECT_EQ(sum.root().find("attributes")->find("axes")->size(), 1u);
}

// Quotes, backslashes, line breaks and bytes that are no UTF-8.
TEST(ExportGraph, HostileNames) {
  Graph g = small();
  g.name = "a\"b\\";
  g.values[0].name = Name(std::string("x\"];\n}\xff"));
  const std::string dot = graph_dot(g);
  EXPECT_NE(dot.find("digraph \"a\\\"b\\\\\" {"), std::string::npos) << dot;
  EXPECT_NE(dot.find(R"(v0 [label="\"x\\\"];\\n}\\xff\"\nf32[2]", shape=ellipse];)"), std::string::npos) << dot;
  // Each line has an even number of quotes that are not escaped.
  for (const std::string& line : lines_of(dot)) {
    int quotes = 0;
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] == '\\')
        ++i;
      else
        quotes += line[i] == '"';
    EXPECT_EQ(quotes % 2, 0) << line;
  }
  for (const std::string& line : lines_of(graph_jsonl(g))) EXPECT_NO_THROW(JsonDocument{line}) << line;
}

}  // namespace
}  // namespace tapedeck
