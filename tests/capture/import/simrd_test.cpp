// Tests the import of traces of simrd: by hand, against a second reading of random traces, a clear message for everything that
// can be wrong, and the published traces, whose peaks are known.
#include <tapedeck/capture/import/simrd.h>

#include <tapedeck/capture/formats/gzip.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

// ---- lines of a trace ----

std::string constant(const std::string& name, std::int64_t bytes) {
  return fmt::format(
      "{{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"{0}\"}}\n{{\"INSTRUCTION\":\"MEMORY\",\"MEMORY\":\"{1}\",\"NAME\":\"{0}\"}}\n",
      name, bytes);
}
std::string quoted_list(const std::vector<std::string>& names) {
  return names.empty() ? "[]" : fmt::format("[\"{}\"]", fmt::join(names, "\",\""));
}
struct Result {
  std::string name;
  std::int64_t bytes;
  int alias = -1;
};
std::string call(const std::string& op, const std::vector<std::string>& args, const std::vector<Result>& results,
                 std::int64_t ns) {
  std::vector<std::string> names;
  std::string behind;
  for (const Result& r : results) {
    names.push_back(r.name);
    behind += fmt::format("{{\"INSTRUCTION\":\"MEMORY\",\"MEMORY\":\"{}\",\"NAME\":\"{}\"}}\n", r.bytes, r.name);
    behind += fmt::format("{{\"ALIAS\":\"{}\",\"INSTRUCTION\":\"ALIAS\",\"NAME\":\"{}\"}}\n", r.alias, r.name);
  }
  return fmt::format("{{\"ARGS\":{},\"INSTRUCTION\":\"CALL\",\"NAME\":\"{}\",\"RESULT\":{},\"TIME\":\"{}\"}}\n",
                     quoted_list(args), op, quoted_list(names), ns) +
         behind;
}
std::string mutate(const std::string& op, const std::vector<std::string>& args, const std::vector<int>& written,
                   std::int64_t ns) {
  return fmt::format("{{\"ARGS\":{},\"INSTRUCTION\":\"MUTATE\",\"MUTATE\":[{}],\"NAME\":\"{}\",\"TIME\":\"{}\"}}\n",
                     quoted_list(args), fmt::join(written, ","), op, ns);
}
std::string copy(const char* instruction, const std::string& dst, const std::string& src) {
  return fmt::format("{{\"DST\":\"{}\",\"INSTRUCTION\":\"{}\",\"SRC\":\"{}\"}}\n", dst, instruction, src);
}
std::string release(const std::string& name) { return fmt::format("{{\"INSTRUCTION\":\"RELEASE\",\"NAME\":\"{}\"}}\n", name); }
std::string annotate(const std::string& what) {
  return fmt::format("{{\"ANNOTATION\":\"{}\",\"INSTRUCTION\":\"ANNOTATE\"}}\n", what);
}

// The spaces before notes are the printer's business.
std::string laid_out_graph(const std::string& text) { return print(parse(text)); }

TEST(ImportSimrd, AStepByHand) {
  const std::string trace = annotate("START") + constant("w", 100) + copy("COPY", "w2", "w") + release("w") +  //
                            constant("x", 40) +                                                                //
                            call("view", {"x"}, {{"xv", 40, 0}}, 1000) +                                       //
                            call("conv", {"xv", "w2"}, {{"h", 400}}, 5000) +                                   //
                            call("view", {"h"}, {{"hv", 400, 0}}, 250) +                                       //
                            mutate("relu_", {"hv"}, {0}, 2000) +                                               //
                            release("hv") +                                                                    //
                            constant("t", 8) +                                                                 // in the middle
                            call("split", {"h", "t"}, {{"a", 10}, {"b", 20}, {"c", 8, 1}}, 3000) +             //
                            release("t") + release("c") +                                                      //
                            annotate("BACKWARD") +                                                             //
                            call("grad", {"a", "h"}, {{"g", 100}}, 4000) +                                     //
                            release("h") + release("a") + release("x") + release("xv") +                       //
                            mutate("add_", {"w2", "g"}, {0}, 7000) + release("g");
  const ImportedTrace imported = import_simrd(trace, "logs/step.log.gz", ImportedResults::returned);
  EXPECT_EQ(print(imported.graph), laid_out_graph(R"(graph step(%x: u8[40], %t: u8[8]) state(%w: u8[100]) {
  %h: u8[400] = opaque(%w, %x) {us=6.25}           [path="conv"]
  %h.1: u8[400] = opaque(%h) {us=2.0}              [path="relu_"]
  %a: u8[10], %b: u8[20] = opaque(%h.1, %t) {us=3.0} [path="split"]
  %g: u8[100] = opaque(%h.1, %a) {us=4.0}          [phase=backward, path="grad"]
  %w.1: u8[100] = opaque(%w, %g) {us=7.0}          [phase=backward, path="add_"]
  return %b
  update %w = %w.1
}
)"));
  EXPECT_EQ(imported.calls, 5);
  EXPECT_EQ(imported.views, 2);
  EXPECT_EQ(imported.mutations, 2);
  EXPECT_EQ(imported.microseconds, 22.25);
  EXPECT_EQ(imported.constant_bytes, 148);
  EXPECT_EQ(imported.held_peak_bytes, 100 + 40 + 400 + 10 + 20 + 100) << "w, x, h, a, b, g; t and its view are gone";
  EXPECT_EQ(imported.held_end_bytes, 100 + 20);
}

TEST(ImportSimrd, ResultsThatAreHeldAreReadByALastNode) {
  const std::string trace = constant("x", 8) + call("f", {"x"}, {{"y", 4}}, 1000) + call("g", {"x"}, {{"end", 4}}, 1000);
  EXPECT_EQ(print(import_simrd(trace, "t").graph), laid_out_graph(R"(graph t(%x: u8[8]) {
  %y: u8[4] = opaque(%x) {us=1.0}           [path="f"]
  %end: u8[4] = opaque(%x) {us=1.0}         [path="g"]
  %end.1: u8[0] = opaque(%y, %end) {us=0.0}
  return %end.1
}
)"));
}

TEST(ImportSimrd, NamesGoAndTurnToOtherTensors) {
  const ImportedTrace t = import_simrd(constant("x", 8) + call("f", {"x"}, {{"y", 4}}, 1) + call("g", {"x"}, {{"z", 2}}, 1) +
                                           copy("COPY_FROM", "y", "z") + call("h", {"y"}, {{"u", 1}}, 1) + release("z"),
                                       "t", ImportedResults::returned);
  EXPECT_EQ(t.graph.value_name(t.graph.inputs(t.graph.nodes[2])[0]), "z");
  EXPECT_EQ(t.held_peak_bytes, 8 + 4 + 2);
  EXPECT_EQ(t.held_end_bytes, 8 + 2 + 1) << "y still stands for z, whose own name is gone";
}

TEST(ImportSimrd, WhatStandsBeforeTheStartBelongsToNoStep) {
  const std::string step = constant("x", 8) + call("f", {"x"}, {{"y", 4}}, 1000);
  const ImportedTrace t = import_simrd(constant("old", 99) + call("k_backward", {"old"}, {{"x", 1}}, 5) + annotate("START") +
                                       step + release("old") + annotate("START"));
  EXPECT_EQ(t.graph.n_inputs, 1);
  EXPECT_EQ(t.calls, 1);
  EXPECT_EQ(t.held_peak_bytes, 12);
  EXPECT_EQ(t.graph.nodes[0].origin.phase, Phase::forward);
}

TEST(ImportSimrd, AnOpOfBackwardBeginsTheBackwardPass) {
  const Graph g = import_simrd(constant("x", 8) + call("mul", {"x"}, {{"y", 4}}, 1) +
                               call("mul_backward", {"y"}, {{"z", 4}}, 1) + call("mul", {"z"}, {{"u", 4}}, 1))
                      .graph;
  EXPECT_EQ(g.nodes[0].origin.phase, Phase::forward);
  EXPECT_EQ(g.nodes[1].origin.phase, Phase::backward);
  EXPECT_EQ(g.nodes[2].origin.phase, Phase::backward);
}

// ---- random traces, read a second time ----

// Follows a trace as the traced program ran: tensors are windows of buffers that are written in place. A hash of how bytes
// were computed stands for them.
struct SecondReading {
  struct Buffer {
    std::int64_t bytes;
    std::string content;
    bool is_constant, is_written;
  };
  std::vector<Buffer> buffers;
  std::map<std::string, std::size_t> names;
  std::int64_t peak = 0;

  std::set<std::size_t> held() const {
    std::set<std::size_t> all;
    for (const auto& entry : names) all.insert(entry.second);
    return all;
  }
  std::int64_t held_bytes() const {
    std::int64_t sum = 0;
    for (const std::size_t b : held()) sum += buffers[b].bytes;
    return sum;
  }
  static std::string computed(const std::string& op, const std::set<std::string>& operands, std::size_t result) {
    return std::to_string(std::hash<std::string>()(fmt::format("{}.{}({})", op, result, fmt::join(operands, ","))));
  }
  std::set<std::string> contents(const std::vector<std::string>& args) const {
    std::set<std::string> all;
    for (const std::string& name : args) all.insert(buffers[names.at(name)].content);
    return all;
  }
};

// What the graph computes, in the same words: constants by their names, results by op and operands.
std::vector<std::string> contents_of(const Graph& g) {
  std::vector<std::string> content;
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) content.push_back(g.value_name(v));
  for (const Node& node : g.nodes) {
    std::set<std::string> operands;
    for (const ValueId v : g.inputs(node)) operands.insert(content[static_cast<std::size_t>(v)]);
    for (std::int32_t k = 0; k < node.n_outputs; ++k)
      content.push_back(SecondReading::computed(node.origin.path.str(), operands, static_cast<std::size_t>(k)));
  }
  return content;
}

class RandomTrace {
 public:
  explicit RandomTrace(unsigned seed) : random_(seed) {}

  std::string text() {
    for (int i = 0; i < 3; ++i) add_constant();
    for (int i = 0; i < 14; ++i) add_line();
    return text_;
  }
  const SecondReading& reading() const { return r_; }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::string fresh() { return fmt::format("x{}", next_++); }
  std::string any_name() {
    auto it = r_.names.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(below(r_.names.size())));
    return it->first;
  }
  void note() { r_.peak = std::max(r_.peak, r_.held_bytes()); }

  void add_constant() {
    const std::string name = fresh();
    const auto bytes = static_cast<std::int64_t>(below(100));
    text_ += constant(name, bytes);
    r_.names[name] = r_.buffers.size();
    r_.buffers.push_back({bytes, name, true, false});
    note();
  }
  void add_call() {
    const std::vector<std::string> args = {any_name(), any_name()};
    const std::string op = fmt::format("op{}", next_++);
    const std::set<std::string> operands = r_.contents(args);
    std::vector<Result> results;
    std::size_t made = 0;
    for (std::size_t k = 0; k <= below(3); ++k)
      results.push_back({fresh(), static_cast<std::int64_t>(below(100)), below(3) == 0 ? static_cast<int>(below(2)) : -1});
    text_ += call(op, args, results, 1000);
    for (const Result& result : results) {
      if (result.alias >= 0) {
        r_.names[result.name] = r_.names.at(args[static_cast<std::size_t>(result.alias)]);
        continue;
      }
      r_.names[result.name] = r_.buffers.size();
      r_.buffers.push_back({result.bytes, SecondReading::computed(op, operands, made++), false, false});
    }
    note();
  }
  void add_mutation() {
    const std::vector<std::string> args = {any_name(), any_name()};
    const std::string op = fmt::format("op{}_", next_++);
    SecondReading::Buffer& written = r_.buffers[r_.names.at(args[0])];
    written.content = SecondReading::computed(op, r_.contents(args), 0);
    written.is_written = true;
    text_ += mutate(op, args, {0}, 1000);
  }
  void add_line() {
    const std::size_t kind = below(10);
    if (kind < 4) return add_call();
    if (kind < 5) return add_constant();
    if (kind < 7) return add_mutation();
    const std::string src = any_name(), dst = kind == 8 ? any_name() : fresh();
    if (kind == 9 && r_.names.size() > 2) {
      text_ += release(src);
      r_.names.erase(src);
      return;
    }
    text_ += copy(kind == 8 ? "COPY_FROM" : "COPY", dst, src);
    r_.names[dst] = r_.names.at(src);
    note();
  }

  std::mt19937 random_;
  SecondReading r_;
  std::string text_;
  int next_ = 0;
};

TEST(ImportSimrd, RandomTracesComputeWhatTheProgramDid) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomTrace random(seed);
    const std::string text = random.text();
    const SecondReading& r = random.reading();
    const ImportedTrace imported = import_simrd(text, "t", ImportedResults::returned);
    const Graph& g = imported.graph;
    EXPECT_EQ(imported.held_peak_bytes, r.peak) << text;
    EXPECT_EQ(imported.held_end_bytes, r.held_bytes()) << text;
    const std::vector<std::string> content = contents_of(g);
    std::multiset<std::string> returned, updates, expected_returned, expected_updates;
    for (const ValueId v : g.outputs) returned.insert(content[static_cast<std::size_t>(v)]);
    for (const Update& u : g.updates) updates.insert(content[static_cast<std::size_t>(u.value)]);
    for (const std::size_t b : r.held())
      if (r.buffers[b].is_constant ? r.buffers[b].is_written : true)
        (r.buffers[b].is_constant ? expected_updates : expected_returned).insert(r.buffers[b].content);
    ASSERT_EQ(returned, expected_returned) << text << print(g);
    ASSERT_EQ(updates, expected_updates) << text << print(g);
  }
}

// ---- faults ----

std::string message_of_log(const std::string& text) {
  return testing::message_or_none<ParseError>([&] { import_simrd(text, "t.log"); });
}

TEST(ImportSimrd, EveryFaultIsSaidWithItsLine) {
  const std::string x = constant("x", 8);
  const struct {
    std::string text;
    const char* message;
  } faults[] = {
      {"{\"INSTRUCTION\":", "t.log:1: error: not JSON at byte 16"},
      {x + "\n\n5\n", "t.log:5: error: 5 where an object should be"},
      {"{}", "t.log:1: error: the line has no \"INSTRUCTION\""},
      {"{\"INSTRUCTION\":\"FREE\"}", "the instruction \"FREE\" is not known"},
      {"{\"INSTRUCTION\":\"FREE\",\"INSTRUCTION\":\"COPY\"}", "key \"INSTRUCTION\" appears twice"},
      {"{\"INSTRUCTION\":\"CALL\",\"ARGS\":" + std::string(1000, '[') + "}", "nested deeper than 16"},
      {"{\"INSTRUCTION\":\"CONSTANT\"}", "t.log:1: error: CONSTANT has no \"NAME\""},
      {"{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":5}", "CONSTANT: \"NAME\" is 5 and not a string"},
      {x.substr(0, x.find('\n')), "t.log:1: error: the trace ends before the MEMORY of \"x\" of line 1"},
      {x.substr(0, x.find('\n') + 1) + release("x"), "t.log:2: error: MEMORY of \"x\" should stand here, for line 1"},
      {x.substr(x.find('\n') + 1), "MEMORY stands behind no CONSTANT or CALL"},
      {constant("x", -1), "t.log:2: error: MEMORY: \"MEMORY\" is \"-1\"; it must be a number of bytes from 0 to 2^46"},
      {constant("x", (std::int64_t{1} << 46) + 1), "MEMORY: \"MEMORY\" is \"70368744177665\""},
      {"{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"x\"}\n{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"x\",\"MEMORY\":"
       "\"99999999999999999999\"}",
       "\"MEMORY\" is \"99999999999999999999\""},
      {"{\"INSTRUCTION\":\"CONSTANT\",\"NAME\":\"x\"}\n{\"INSTRUCTION\":\"MEMORY\",\"NAME\":\"x\",\"MEMORY\":\"12 \"}",
       "\"MEMORY\" is \"12 \""},
      {x + x, "t.log:3: error: the name \"x\" was defined on line 1 already"},
      {x + release("x") + x, "t.log:4: error: the name \"x\" was released on line 3 already"},
      {x + release("x") + release("x"), "t.log:4: error: the name \"x\" was released on line 3"},
      {x + copy("COPY", "y", "z"), "t.log:3: error: the name \"z\" is not defined"},
      {x + copy("COPY", "x", "x"), "the name \"x\" was defined on line 1 already"},
      {x + copy("COPY_FROM", "y", "x"), "the name \"y\" is not defined"},
      {x + call("f", {"y"}, {{"z", 4}}, 1), "t.log:3: error: the name \"y\" is not defined"},
      {x + call("f", {"x"}, {{"y", 4}, {"y", 4}}, 1), "t.log:3: error: the name \"y\" was defined on line 3 already"},
      {x + call("f", {"x"}, {{"y", 4, 1}}, 1), "t.log:5: error: ALIAS: 1 is the number of no argument; line 3 has 1"},
      {x + call("f", {"x"}, {{"y", 4, -2}}, 1), "ALIAS: \"ALIAS\" is \"-2\"; it must be -1 or the number of an argument"},
      {x + call("f", {"x"}, {{"y", 4}}, -1),
       "CALL: \"TIME\" is \"-1\"; it must be a whole number of nanoseconds from 0 to 10^18"},
      {x + call("f", {"x"}, {{"y", 4}}, 1) + constant("y", 1), "t.log:6: error: the name \"y\" was defined on line 3"},
      {x + call("f", {"x"}, {}, 1) + "{\"INSTRUCTION\":\"MEMORY\",\"MEMORY\":\"4\",\"NAME\":\"y\"}", "MEMORY stands behind no"},
      {x + call("f", {}, {{"y", 4, 0}}, 1), "ALIAS: 0 is the number of no argument; line 3 has 0"},
      {x + mutate("f_", {"x"}, {1}, 1), "MUTATE: \"MUTATE\" holds 1; it must be the number of one of its 1 arguments"},
      {x + mutate("f_", {"x"}, {-1}, 1), "MUTATE: \"MUTATE\" holds -1"},
      {x + "{\"INSTRUCTION\":\"CALL\",\"NAME\":\"f\",\"ARGS\":\"x\",\"RESULT\":[],\"TIME\":\"1\"}",
       "\"ARGS\" is \"x\" and not a list"},
      {x + "{\"INSTRUCTION\":\"CALL\",\"NAME\":\"f\",\"ARGS\":[1],\"RESULT\":[],\"TIME\":\"1\"}",
       "\"ARGS\" holds 1 and not a string"},
      {x + "{\"INSTRUCTION\":\"ALIAS\",\"NAME\":\"x\",\"ALIAS\":\"-1\"}", "ALIAS stands behind no result of a CALL"},
  };
  for (const auto& f : faults) EXPECT_MENTIONS(message_of_log(f.text), f.message);
}

TEST(ImportSimrd, NamesThatAreEmptyAndSizesThatAddUpToTooMuch) {
  const Graph g = import_simrd(constant("", 8) + call("", {""}, {{"y", 0}}, 1), "traces/.log").graph;
  EXPECT_EQ(g.name.str(), "main");
  EXPECT_EQ(g.value_name(0), "constant");
  EXPECT_EQ(print(parse(print(g))), print(g));
  std::string text;
  for (int i = 0; i < (1 << 14) + 1; ++i) text += constant(std::to_string(i), std::int64_t{1} << 46);
  EXPECT_EQ(message_of_log(text), "t.log:32769: error: all values up to here hold more than 2^60 bytes");
}

// A trace that is cut off anywhere is read up to a whole line, or refused; nothing else.
TEST(ImportSimrd, CutOffAnywhere) {
  const std::string trace = constant("x", 8) + call("f", {"x"}, {{"y", 4}}, 1) + mutate("g_", {"y"}, {0}, 1) + release("x");
  int refused = 0;
  for (std::size_t n = 0; n <= trace.size(); ++n) refused += message_of_log(trace.substr(0, n)).empty() ? 0 : 1;
  EXPECT_GT(refused, static_cast<int>(trace.size()) - 20);
  EXPECT_EQ(message_of_log(trace), "");
  EXPECT_EQ(message_of_log(""), "t.log:0: error: the trace calls no op");
}

// ---- published traces ----

struct PublishedLog {
  const char* file;
  std::int64_t peak_mb, constant_mb;  // as simrd's simulator reports them
  std::int64_t nodes;
};
class SimrdTraces : public ::testing::TestWithParam<PublishedLog> {};

TEST_P(SimrdTraces, HeldPeakAndNodesAreThePublishedOnes) {
  const PublishedLog& known = GetParam();
  const std::filesystem::path path = std::filesystem::path(TAPEDECK_SHARED_DIR) / "data" / "simrd" / known.file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no trace at " << path;
  const ImportedTrace t = import_simrd(unpacked_text(read_text_file(path.string()), path.string()), path.string());
  const auto megabytes = [](std::int64_t bytes) { return (bytes + 500'000) / 1'000'000; };
  EXPECT_EQ(megabytes(t.held_peak_bytes), known.peak_mb);
  EXPECT_EQ(megabytes(t.constant_bytes), known.constant_mb);
  EXPECT_EQ(t.graph.node_count(), known.nodes + 1) << "with %end";
  EXPECT_GT(t.graph.nodes.size(), 0u);
  EXPECT_EQ(t.graph.nodes.back().origin.phase, Phase::backward);
}

INSTANTIATE_TEST_SUITE_P(All, SimrdTraces,
                         ::testing::Values(PublishedLog{"resnet32_b56.log.gz", 10061, 36, 270},
                                           PublishedLog{"unet_b6.log.gz", 8416, 93, 201},
                                           PublishedLog{"transformer_b10.log.gz", 9864, 263, 1310}),
                         [](const auto& info) {
                           const std::string file = info.param.file;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace tapedeck
