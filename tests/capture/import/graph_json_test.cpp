// Tests the import of node-link JSON: both spellings by hand, a clear message for everything that can be wrong, and the graphs
// published with Moccasin, whose sizes, peaks and costs are known.
#include <tapedeck/capture/import/graph_json.h>

#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <filesystem>
#include <string>

namespace tapedeck {
namespace {

constexpr const char* kChain = R"({"directed": true, "multigraph": false, "graph": {"name": "small net"},
 "nodes": [
  {"name": "conv", "backward": false, "cost_cpu": 385, "cost_ram": 100, "id": 0},
  {"name": "conv_grad", "backward": true, "cost_cpu": 12.5, "cost_ram": 300.0, "id": 7},
  {"name": "loss", "backward": false, "cost_cpu": 0, "cost_ram": 0, "id": 3}],
 "links": [{"source": 0, "target": 7}, {"source": 3, "target": 7}, {"source": 0, "target": 3}]})";

std::string message_of(const std::string& text) {
  return testing::message_or_none<ParseError>([&] { import_graph_json(text, "g.json"); });
}

// The spaces before notes are the printer's business.
std::string laid_out(const std::string& text) { return print(parse(text)); }

TEST(ImportGraphJson, CheckmateSpellingInTheOrderOfIds) {
  EXPECT_EQ(print(import_graph_json(kChain, "g.json", ImportedResults::returned)), laid_out(R"(graph "small net"() {
  %conv: u8[100] = opaque() {us=385.0}
  %loss: u8[0] = opaque(%conv) {us=0.0}
  %conv_grad: u8[300] = opaque(%conv, %loss) {us=12.5}  [phase=backward]
  return %conv_grad
}
)"));
}

TEST(ImportGraphJson, RandomLayeredSpellingInTheOrderThatIsGiven) {
  const std::string text = R"({"graph": {"order": "[2, 0, 1]"},
    "nodes": [{"name": 0, "out_cost": 7, "duration": 3}, {"name": 1, "out_cost": 8, "duration": 4, "param_cost": 0},
              {"name": 2, "out_cost": 9, "duration": 5}],
    "links": [{"0": 2, "1": 0}, {"0": 2, "1": 1}]})";
  const std::string expected = laid_out(R"(graph layered() {
  %n2: u8[9] = opaque() {us=5.0}
  %n0: u8[7] = opaque(%n2) {us=3.0}
  %n1: u8[8] = opaque(%n2) {us=4.0}
  %end: u8[0] = opaque(%n0, %n1) {us=0.0}
  return %end
}
)");
  EXPECT_EQ(print(import_graph_json(text, "a/layered.v2.json")), expected);
  std::string as_list = text;
  as_list.replace(as_list.find("\"[2, 0, 1]\""), 11, "[2,0,1]");
  EXPECT_EQ(print(import_graph_json(as_list, "layered.json")), expected);
}

TEST(ImportGraphJson, IdsThatAreTextRunAsListedAndNamesAreMadeUnique) {
  const Graph g = import_graph_json(R"({"nodes": [{"id": "b", "cost_ram": 1, "cost_cpu": 1, "name": "end"},
      {"id": "a", "cost_ram": 2, "cost_cpu": 1, "name": "end"}, {"id": "c", "cost_ram": 3, "cost_cpu": 1}],
    "edges": [{"source": "b", "target": "a"}]})");
  ASSERT_EQ(g.node_count(), 4);
  EXPECT_EQ(g.value_name(0), "end");
  EXPECT_EQ(g.value_name(1), "end.1");
  EXPECT_EQ(g.value_name(2), "c");
  EXPECT_EQ(g.value_name(3), "end.2");
  EXPECT_EQ(g.name.str(), "main");
  EXPECT_EQ(parse(print(g)).node_count(), 4);
}

TEST(ImportGraphJson, AMultigraphMayRepeatALink) {
  const std::string text = R"({"multigraph": true, "nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 1},
    {"id": 1, "cost_ram": 1, "cost_cpu": 1}], "links": [{"source": 0, "target": 1, "key": 0}, {"source": 0, "target": 1, "key": 1}]})";
  EXPECT_EQ(import_graph_json(text).nodes[1].n_inputs, 1);
}

// The graph above with one part replaced.
std::string chain_with(const std::string& part, const std::string& by) {
  std::string text = kChain;
  const std::size_t at = text.find(part);
  EXPECT_NE(at, text.npos) << part;
  return text.replace(at, part.size(), by);
}

TEST(ImportGraphJson, EveryFaultIsSaidWithItsLineAndNode) {
  EXPECT_EQ(message_of(kChain), "");
  const struct {
    const char *part, *by, *message;
  } faults[] = {
      {"\"cost_ram\": 100", "\"cost_ram\": -3",
       R"(g.json:3: error: node 0 ("conv"): "cost_ram" is -3; it must be a whole number of bytes from 0 to 2^46)"},
      {"\"cost_ram\": 100", "\"cost_ram\": 1.5", "\"cost_ram\" is 1.5"},
      {"\"cost_ram\": 100", "\"cost_ram\": 1e300", "\"cost_ram\" is 1e+300"},
      {"\"cost_ram\": 100", "\"cost_ram\": 70368744177665", "\"cost_ram\" is 70368744177665"},
      {"\"cost_ram\": 100", "\"cost_ram\": \"100\"", "\"cost_ram\" is \"100\""},
      {"\"cost_ram\": 100,", "", R"(node 0 ("conv") has neither "cost_ram" nor "out_cost")"},
      {"\"cost_cpu\": 12.5", "\"cost_cpu\": NaN", "g.json: error: not JSON at byte 221, line 4"},
      {"\"cost_cpu\": 12.5", "\"cost_cpu\": \"nan\"",
       R"(g.json:4: error: node 7 ("conv_grad"): "cost_cpu" is "nan"; it must be a number of microseconds from 0 to 1e15)"},
      {"\"cost_cpu\": 12.5", "\"cost_cpu\": -1", "\"cost_cpu\" is -1"},
      {"\"cost_cpu\": 12.5", "\"cost_cpu\": 2e15", "\"cost_cpu\" is 2000000000000000"},
      {"\"backward\": true", "\"backward\": 1", R"("backward" is 1 and not true or false)"},
      {"\"id\": 7", "\"id\": 0", R"(g.json:4: error: node 0 ("conv_grad"): its id appears twice)"},
      {"\"id\": 7", "\"id\": [7]", "\"id\" is an array; an id is an integer or a string"},
      {"\"id\": 7", "\"id\": 7.5", "\"id\" is 7.5"},
      {"\"source\": 3", "\"source\": 99", "g.json:6: error: link 1: its source is 99, and no node has this id"},
      {"\"source\": 3", "\"source\": \"3\"", "link 1: its source is \"3\", and no node has this id"},
      {"\"source\": 3", "\"from\": 3", R"(link 1 lacks "source" and "target", or "0" and "1")"},
      {"{\"source\": 3, \"target\": 7}", "{\"source\": 0, \"target\": 7}",
       R"(g.json:6: error: the link from node 0 ("conv") to node 7 ("conv_grad") appears twice)"},
      {"{\"source\": 3, \"target\": 7}", "{\"source\": 7, \"target\": 7}",
       "link 1: node 7 (\"conv_grad\") reads its own result"},
      {"{\"source\": 3, \"target\": 7}", "{\"source\": 7, \"target\": 3}",
       R"(node 3 ("loss") reads the result of node 7 ("conv_grad"), which runs after it: there is a cycle, or the order is wrong)"},
      {"{\"source\": 3, \"target\": 7}", "5", "link 1 is 5 and not an object"},
      {"\"directed\": true", "\"directed\": false", "the graph is not directed"},
      {"\"directed\": true", "\"directed\": 1", "\"directed\" is 1 and not true or false"},
      {"\"nodes\"", "\"knots\"", "g.json:1: error: the file has no \"nodes\""},
      {"\"links\"", "\"lines\"", "g.json:1: error: the file has no \"links\""},
      {"\"name\": \"small net\"", "\"order\": [0, 3]", R"("order" lacks node 7 ("conv_grad"))"},
      {"\"name\": \"small net\"", "\"order\": [0, 3, 7, 3]", "\"order\" has id 3 twice"},
      {"\"name\": \"small net\"", "\"order\": [0, 3, 5]", "\"order\" has 5, and no node has this id"},
      {"\"name\": \"small net\"", "\"order\": [0, 3, [7]]", "\"order\" has an array"},
      {"\"name\": \"small net\"", "\"order\": \"0 3 7\"", "\"order\" is a string that holds no list: not JSON"},
      {"\"name\": \"small net\"", "\"order\": {}", "\"order\" is an object and not a list of ids"},
      {"\"name\": \"small net\"", "\"order\": [7, 3, 0]", "there is a cycle, or the order is wrong"},
  };
  for (const auto& f : faults) EXPECT_MENTIONS(message_of(chain_with(f.part, f.by)), f.message) << f.by;
}

TEST(ImportGraphJson, TextThatIsNoGraph) {
  EXPECT_EQ(message_of("[]"), "g.json:1: error: an array where an object should be");
  EXPECT_EQ(message_of(R"({"nodes": [], "links": []})"), "g.json:1: error: the graph has no nodes");
  EXPECT_EQ(message_of(R"({"nodes": {}, "links": []})"), "g.json:1: error: \"nodes\" is an object and not an array");
  EXPECT_EQ(message_of(R"({"nodes": [5], "links": []})"), "g.json:1: error: node 0 of the list is 5 and not an object");
  EXPECT_EQ(message_of(R"({"nodes": [{}], "links": []})"),
            "g.json:1: error: node 0 of the list has neither \"id\" nor \"name\"");
  EXPECT_MENTIONS(message_of(std::string(kChain).substr(0, 300)), "g.json: error: not JSON at byte 301");
  EXPECT_MENTIONS(message_of(std::string(100000, '[')), "nested deeper than 16");
  EXPECT_MENTIONS(message_of(chain_with("\"id\": 0", "\"id\": 0, \"id\": 1")), "key \"id\" appears twice");
}

TEST(ImportGraphJson, MessagesShowValuesOfEveryKind) {
  for (const char* value : {"null", "true", "false", "-1", "0.5", "\"many\""})
    EXPECT_MENTIONS(message_of(chain_with("\"cost_ram\": 100", std::string("\"cost_ram\": ") + value)),
                    std::string("\"cost_ram\" is ") + value + ";");
  EXPECT_MENTIONS(message_of(chain_with("\"cost_ram\": 100", "\"cost_ram\": {}")), "is an object;");
  const std::string message = message_of(chain_with("\"conv\"", "\"" + std::string(5000, 'x') + "\"") + "x");
  EXPECT_LT(message.size(), 200u) << message;
  EXPECT_LT(message_of(chain_with("\"cost_ram\": 100", "\"cost_ram\": \"" + std::string(5000, 'x') + "\"")).size(), 300u);
}

TEST(ImportGraphJson, NamesThatAreMissing) {
  const Graph g = import_graph_json(R"({"graph": 5, "nodes": [{"name": "", "cost_ram": 1, "cost_cpu": 1},
      {"id": 9, "cost_ram": 1, "cost_cpu": 1}, {"id": 4, "name": 7, "cost_ram": 1, "cost_cpu": 1}], "links": []})",
                                    "a/.json");
  EXPECT_EQ(print(g), laid_out(R"(graph main() {
  %n: u8[1] = opaque() {us=1.0}
  %n9: u8[1] = opaque() {us=1.0}
  %n4: u8[1] = opaque() {us=1.0}
  %end: u8[0] = opaque(%n, %n9, %n4) {us=0.0}
  return %end
}
)"));
}

TEST(ImportGraphJson, ManyLargeNodesAreTooMuch) {
  std::string text = "{\"nodes\": [";
  for (int i = 0; i < (1 << 14) + 1; ++i)
    text += (i ? ",\n" : "") + ("{\"id\": " + std::to_string(i)) + ", \"cost_cpu\": 1, \"cost_ram\": 70368744177664}";
  EXPECT_EQ(message_of(text + "], \"links\": []}"),
            "g.json:16385: error: node 16384: the nodes up to here hold more than 2^60 bytes");
}

// References: the table of these graphs in their papers and repositories. A share is of the peak of the given order.
struct Published {
  const char* file;
  std::int64_t nodes, links, peak, microseconds;
};
class MoccasinGraphs : public ::testing::TestWithParam<Published> {};

TEST_P(MoccasinGraphs, SizePeakAndCostAreThePublishedOnes) {
  const Published& known = GetParam();
  const std::filesystem::path path = std::filesystem::path(TAPEDECK_SHARED_DIR) / "data" / "moccasin" / known.file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no graph at " << path;
  const Graph g = import_graph_json(read_text_file(path.string()), path.string());
  std::int64_t links = 0;
  double us = 0;
  for (const Node& node : g.nodes) {
    links += node.n_inputs;
    us += static_cast<const OpaqueAttrs*>(g.attributes(node))->us;
  }
  EXPECT_EQ(g.node_count(), known.nodes + 1) << "with %end";
  EXPECT_EQ(links, known.links + 1) << "one node is read by none but %end";
  EXPECT_EQ(us, static_cast<double>(known.microseconds));
  PlanOptions options;
  options.strategy = Strategy::none;
  options.alignment = 1;
  options.ordering = Ordering::recorded;
  options.find_floor = false;
  EXPECT_EQ(make_plan(g, options).lower_bound_bytes, known.peak);
}

INSTANTIATE_TEST_SUITE_P(All, MoccasinGraphs,
                         ::testing::Values(Published{"vgg16_b256_train.json", 45, 87, 15825108992, 15500},
                                           Published{"unet_b32_train.json", 71, 148, 20959461376, 31005},
                                           Published{"mobilenet_b512_train.json", 185, 367, 34701056000, 162080},
                                           Published{"random_n100.json", 100, 236, 46319, 47769},
                                           Published{"random_n250.json", 250, 944, 146840, 125569}),
                         [](const auto& info) {
                           const std::string file = info.param.file;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace tapedeck
