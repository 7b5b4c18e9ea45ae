// Tests the parser's error messages: one wrong program for each message, with the expected text and position.
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <string>

namespace tapedeck {
namespace {

std::string message_of(const std::string& text) {
  return testing::message_or_none<ParseError>([&] { parse(text, "t.graph"); });
}

struct Bad {
  const char* text;
  const char* message;  // without the leading "t.graph:"
};

void expect_errors(std::initializer_list<Bad> table) {
  for (const Bad& bad : table) EXPECT_EQ(message_of(bad.text), std::string("t.graph:") + bad.message) << bad.text;
}

TEST(TextError, tokens) {
  expect_errors({
      {"", "1:1: error: expected 'graph', got the end of the text"},
      {"// only a comment", "1:18: error: expected 'graph', got the end of the text"},
      {"graph g() { return } #", "1:22: error: unexpected character \"#\""},
      {"graph g() {\n\x01", "2:1: error: unexpected character \"\\x01\""},
      {"graph g(\xc3\xa9", "1:9: error: unexpected character \"\xc3\xa9\""},
      {"graph g(\xff", "1:9: error: unexpected character \"\\xff\""},
      {"graph \"open", "1:7: error: a string is not closed on its line"},
      {"graph \"a\\q\"() { return }", "1:9: error: unknown escape; known are \\\" \\\\ \\n \\t \\r \\xHH"},
      {"graph g(% x: f32[]) { return }", "1:9: error: expected a name right after '%'"},
  });
}

TEST(TextError, header) {
  expect_errors({
      {"tape g() { return }", "1:1: error: expected 'graph', got 'tape'"},
      {"graph () { return }", "1:7: error: expected the graph's name, got '('"},
      {"graph -1() { return }", "1:7: error: not a name: '-1'"},
      {"graph g { return }", "1:9: error: expected '(' before the list of values, got '{'"},
      {"graph g(x: f32[]) { return }", "1:9: error: expected a value (%name: type), got 'x'"},
      {"graph g(%x f32[]) { return }", "1:12: error: expected ':' after a value's name, got 'f32'"},
      {"graph g(%\"\": f32[]) { return }", "1:9: error: an input or state value needs a name"},
      {"graph g(%x: f32[], %x: f32[]) { return }", "1:20: error: %x is already defined, on line 1"},
      {"graph g() state(%m: f32[] [role=momentum]) { return }",
       "1:33: error: unknown role 'momentum'; known are: none input parameter moment statistic counter rng"},
      {"graph g() { return } graph h() { return }", "1:22: error: expected the end of the text after the graph, got 'graph'"},
      {"graph g() { return", "1:19: error: expected '}' at the end of the graph, got the end of the text"},
      {"graph g() {", "1:12: error: expected a node, or 'return', got the end of the text"},
  });
}

TEST(TextError, types) {
  expect_errors({
      {"graph g(%x: f33[]) { return }", "1:13: error: unknown dtype 'f33': did you mean 'f32'?"},
      {"graph g(%x: 3) { return }", "1:13: error: unknown dtype '3'"},
      {"graph g(%x: f32) { return }", "1:16: error: expected '[' after a dtype, got ')'"},
      {"graph g(%x: f32[-1]) { return }", "1:17: error: a size cannot be negative: -1"},
      {"graph g(%x: f32[n]) { return }", "1:17: error: expected an integer: size n"},
      {"graph g(%x: f32[99999999999999999999]) { return }",
       "1:17: error: the number is out of range: size 99999999999999999999"},
      {"graph g(%x: f32[1,1,1,1,1,1,1,1,1]) { return }", "1:33: error: a type has at most 8 dimensions"},
      {"graph g(%x: f32[70368744177664]) { return }",
       "1:13: error: the type f32[70368744177664] is too large (more than 2^46 bytes)"},
      {"graph g(%x: f32[0,9223372036854775807,2]) { return }",
       "1:13: error: the type f32[0,9223372036854775807,2] is too large (more than 2^46 bytes)"},
  });
  std::string many = "graph g(";
  for (int i = 0; i < (1 << 14) + 1; ++i) many += (i ? ",%x" : "%x") + std::to_string(i) + ": u8[70368744177664]\n";
  EXPECT_EQ(message_of(many + ") { return }"),
            "t.graph:16385:11: error: the values up to here together hold more than 2^60 bytes");
}

TEST(TextError, nodes) {
  expect_errors({
      {"graph g(%x: f32[]) {\n  %y: f32[] = rleu(%x)\n  return }", "2:15: error: unknown op 'rleu': did you mean 'relu'?"},
      {"graph g(%x: f32[]) { %y: f32[] = acme.swiglu(%x) return }", "1:34: error: unknown op 'acme.swiglu'"},
      {"graph g(%x: f32[]) { %y: f32[] = while(%x) (%a: f32[]) { return %a } return }",
       "1:34: error: op 'while' needs the attribute 'carried'"},
      {"graph g(%x: f32[]) { %y: f32[] = relu(%x) (%a: f32[]) { return %a } return }",
       "1:34: error: [relu] takes 0 regions, got 1"},
      {"graph g(%xs: f32[]) { %y: f32[] = relu(%xz) return }", "1:40: error: undefined value %xz: did you mean 'xs'?"},
      {"graph g() { %y: f32[] = relu(%x) return }", "1:30: error: undefined value %x"},
      {"graph g() { %y: f32[] = relu(%3) return }", "1:30: error: undefined value %3"},
      {"graph g() {\n%y: f32[] = relu(%z)\n%z: f32[] = relu(%y)\nreturn }",
       "2:18: error: %z is read before its definition on line 3"},
      {"graph g(%x: f32[]) { %y: f32[] = relu(%y) return }", "1:39: error: undefined value %y"},
      {"graph g(%x: f32[]) {\n%x: f32[] = relu(%x) return }", "2:1: error: %x is already defined, on line 1"},
      {"graph g() { %a: f32[], %a: f32[] = opaque() return }", "1:24: error: %a is already defined, on line 1"},
      {"graph g(%x: f32[]) { %1: f32[] = relu(%x) %1: f32[] = relu(%x) return }",
       "1:43: error: %1 is already defined, on line 1"},
      {"graph g(%x: f32[2]) { %y: f32[3] = relu(%x) return }", "1:27: error: [relu] gives f32[2], but f32[3] is declared"},
      {"graph g(%x: f32[2]) { relu(%x) return }", "1:23: error: [relu] gives 1 result, but 0 are declared"},
      {"graph g(%x: f32[2]) { %a: f32[2], %b: f32[2] = relu(%x) return }",
       "1:48: error: [relu] gives 1 result, but 2 are declared"},
      {"graph g(%x: f32[2]) { %y: f32[2] = relu(%x, %x) return }", "1:36: error: [relu] takes 1 operand, got 2"},
      {"graph g(%x: f32[2], %y: f64[2]) {\n %z: f32[2] = add(%x, %y) return }",
       "2:15: error: [add] operands differ in dtype: f32[2] and f64[2]"},
      {"graph g(%x: f32[2]) { %y: f32[2] relu(%x) return }",
       "1:34: error: expected '=' after the results of a node, got 'relu'"},
      {"graph g(%x: f32[2]) { %y: f32[2] = %x return }", "1:36: error: expected the name of an op, got %x"},
      {"graph g(%x: f32[2]) { %y: f32[2] = relu(x) return }", "1:41: error: expected a value such as %x, got 'x'"},
      {"graph g(%x: f32[2]) { %y: f32[2] = relu(%x return }", "1:44: error: expected ')' after the operands, got 'return'"},
      {"graph g(%x: f32[2]) { %\"\": f32[2] = relu(%x) return }", "1:23: error: a value's name is empty"},
  });
}

TEST(TextError, attributes) {
  const auto node = [](const std::string& line) { return message_of("graph g(%x: f32[2,3]) {\n" + line + "\nreturn }"); };
  struct Case {
    const char* line;
    const char* message;
  };
  const Case cases[] = {
      {"%y: f32[] = sum(%x) {axis=[0]}", "22: error: op 'sum' has no attribute 'axis': did you mean 'axes'?"},
      {"%y: f32[2,3] = relu(%x) {slope=1}", "26: error: op 'relu' has no attribute 'slope'"},
      {"%y: f32[] = sum(%x) {axes=[0,1], axes=[1]}", "34: error: the attribute 'axes' is given twice"},
      {"%y: f32[6] = reshape(%x)", "14: error: op 'reshape' needs the attribute 'shape'"},
      {"%y: f32[] = sum(%x) {keepdims=1}", "31: error: expected true or false: keepdims=1"},
      {"%y: f32[] = sum(%x) {axes=0}", "27: error: expected a list of integers for 'axes', got '0'"},
      {"%y: f32[] = sum(%x) {axes=[0,1.5]}", "30: error: expected an integer: axes=1.5"},
      {"%y: f32[] = sum(%x) {axes=[99999999999999999999]}", "28: error: the number is out of range: axes=99999999999999999999"},
      {"%y: f32[] = sum(%x) {axes=[0,0,0,0,0,0,0,0,0]}", "27: error: the list 'axes' has more than 8 entries"},
      {"%y: f32[] = sum(%x) {axes=[0 1]}", "30: error: expected ']' after a list, got '1'"},
      {"%y: f32[] = sum(%x) {axes}", "26: error: expected '=' after an attribute's name, got '}'"},
      {"%y: f32[] = sum(%x) {axes=[0]", "1: error: expected '}' after the attributes, got 'return'"},
      {"%y: f32[2,3] = cast(%x) {dtype=float}", "32: error: unknown dtype 'float'"},
      {"%y: f32[2,3] = cast(%x) {dtype=\"f32\"}", "32: error: expected a dtype for 'dtype', got a string"},
      {"%y: f32[] = opaque(%x) {us=fast}", "28: error: expected a number: us=fast"},
      {"%y: f32[] = opaque(%x) {us=1e999}", "28: error: the number is out of range: us=1e999"},
      {"%y: f32[] = opaque(%x) {us=1.2.3}", "28: error: expected a number: us=1.2.3"},
      {"%y: f32[] = opaque(%x) {us=-1}", "13: error: [opaque] us must be a number of at least 0"},
  };
  for (const Case& c : cases) {
    const std::string line = std::string(c.message).substr(0, 2) == "1:" ? "3:" : "2:";
    EXPECT_EQ(node(c.line), "t.graph:" + line + c.message) << c.line;
  }
}

TEST(TextError, constants) {
  expect_errors({
      {"graph g() { %c: f32[2] = constant() {value=[1]} return }", "1:44: error: 1 elements for f32[2], which has 2"},
      {"graph g() { %c: f32[2] = constant() return }", "1:26: error: op 'constant' needs the attribute 'value'"},
      {"graph g() { %c: i32[] = constant() {value=[1.5]} return }", "1:44: error: expected an integer of i32: 1.5"},
      {"graph g() { %c: u8[] = constant() {value=[256]} return }", "1:43: error: the number is out of range of u8: 256"},
      {"graph g() { %c: f32[] = constant() {value=[1e39]} return }", "1:44: error: the number is out of range of f32: 1e39"},
      {"graph g() { %c: bool[] = constant() {value=[1]} return }", "1:45: error: expected true or false of bool: 1"},
      {"graph g() { %c: f32[] = constant() {value=[1], tensor=\"a\"} return }",
       "1:48: error: the attribute 'value' is given twice"},
      {"graph g() { %c: f32[] = constant() {tensor=a} return }", "1:44: error: expected a tensor's name in quotes, got 'a'"},
      {"graph g() { %c: f32[] = constant() {tensor=\"\"} return }", "1:44: error: a tensor's name is empty"},
      {"graph g() { %c: f32[] = constant() {abstract=false} return }", "1:46: error: expected abstract=true"},
      {"graph g() { constant() {value=[]} return }", "1:13: error: op 'constant' has exactly one result"},
      {"graph g() { %c: f32[70000000000] = constant() {value=[1]} return }",
       "1:54: error: 1 elements for f32[70000000000], which has 70000000000"},
  });
}

TEST(TextError, notes) {
  const auto notes = [](const char* text) {
    return message_of(std::string("graph g(%x: f32[]) {\n%y: f32[] = relu(%x) [") + text + "]\nreturn }");
  };
  EXPECT_EQ(notes("phase=sideways"), "t.graph:2:29: error: unknown phase 'sideways'; known are: forward backward update");
  EXPECT_EQ(notes("of=h"), "t.graph:2:26: error: expected a value such as %x, got 'h'");
  EXPECT_EQ(notes("after=[%q]"), "t.graph:2:30: error: undefined value %q");
  EXPECT_EQ(notes("after=[%y]"), "t.graph:2:30: error: undefined value %y");
  EXPECT_EQ(notes("region=-1"), "t.graph:2:30: error: the number is out of range: region=-1");
  EXPECT_EQ(notes("path=fc1"), "t.graph:2:28: error: expected a string for 'path', got 'fc1'");
  EXPECT_EQ(notes("region=1, region=1"), "t.graph:2:33: error: the note 'region' is given twice");
  EXPECT_EQ(notes("seg="), "t.graph:2:27: error: expected a note's value, got ']'");
  EXPECT_EQ(notes("region"), "t.graph:2:29: error: expected a region's number, got ']'");
  EXPECT_EQ(notes("clone=yes"), "t.graph:2:29: error: expected true or false, got 'yes'");
  EXPECT_EQ(notes("keep, recompute"), "t.graph:2:29: error: a node is marked either 'keep' or 'recompute', not both");
  EXPECT_EQ(notes("recompute, phase=backward, keep"),
            "t.graph:2:50: error: a node is marked either 'keep' or 'recompute', not both");
  EXPECT_EQ(notes("keep, keep"), "t.graph:2:29: error: the note 'keep' is given twice");
  EXPECT_EQ(notes("keep=true"), "t.graph:2:23: error: the note 'keep' has no value");
  EXPECT_EQ(notes("recomptue"), "t.graph:2:23: error: unknown note 'recomptue': did you mean 'recompute'?");
  EXPECT_EQ(notes("seg=0 at=1"), "t.graph:2:29: error: expected ']' after the notes, got 'at'");
}

TEST(TextError, return_and_update) {
  expect_errors({
      {"graph g(%x: f32[]) { return %x, }", "1:33: error: expected a returned value (%x, or name=%x), got '}'"},
      {"graph g(%x: f32[]) { return y }", "1:31: error: expected '=' after an output's name, got '}'"},
      {"graph g(%x: f32[]) { return %y }", "1:29: error: undefined value %y"},
      {"graph g(%x: f32[]) { return update %x = %x }", "1:36: error: %x is not a state value"},
      {"graph g(%x: f32[]) state(%w: f32[]) { return update %w = %x, %w = %x }", "1:62: error: %w is updated twice"},
      {"graph g(%x: f32[2]) state(%w: f32[]) { return update %w = %x }",
       "1:59: error: %w is f32[], and cannot be updated from f32[2]"},
      {"graph g(%x: f32[]) state(%w: f32[]) { return update }", "1:53: error: expected a value such as %x, got '}'"},
      {"graph g(%x: f32[]) { return %x %y: f32[] = relu(%x) }", "1:32: error: expected '}' at the end of the graph, got %y"},
  });
}

}  // namespace
}  // namespace tapedeck
