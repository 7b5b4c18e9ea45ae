// Tests the parser of the examples in op blocks.
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/example.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

TEST(Example, HasTypesRangesAndAttributes) {
  const ParsedExample e = parse_example(ops::softmax, "softmax(f32[3,5] in (-0.5,1e3), bool[], i32[0]) {axis=0}");
  ASSERT_EQ(e.operands.size(), 3u);
  EXPECT_EQ(e.operands[0].type, (Type{DType::f32, {3, 5}}));
  EXPECT_EQ(e.operands[0].low, -0.5);
  EXPECT_EQ(e.operands[0].high, 1000.0);
  EXPECT_EQ(e.operands[1].type, (Type{DType::boolean, {}}));
  EXPECT_EQ(e.operands[1].high, 2.0);
  EXPECT_EQ(e.operands[2].type, (Type{DType::i32, {0}}));
  EXPECT_EQ(e.operands[2].low, 0.0);
  EXPECT_EQ(e.operands[2].high, 4.0);
  EXPECT_EQ(e.types()[0], e.operands[0].type);
  EXPECT_EQ(static_cast<const AxisAttrs*>(e.attrs())->axis, 0);
}

TEST(Example, WithoutAttributesHasTheDefaults) {
  EXPECT_EQ(static_cast<const AxisAttrs*>(parse_example(ops::softmax, "softmax(f16[2])").attrs())->axis, -1);
  EXPECT_EQ(parse_example(ops::alias, "alias(f64[2])").attrs(), nullptr);
  EXPECT_TRUE(parse_example(ops::arange, "arange() {stop=2.0, dtype=f32}").operands.empty());
}

std::string mistake(const char* text) {
  return testing::message_of<ParseError>([&] { parse_example(ops::alias, text); });
}

TEST(Example, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(mistake("alias(f31[2])"), "alias:1:7: error: unknown dtype 'f31'");
  EXPECT_EQ(mistake("alias(f32[2] in (a,1))"), "alias:1:18: error: expected a number: a");
  EXPECT_EQ(mistake("alias(f32[-1])"), "alias:1:7: error: a size is negative or the type too large");
  EXPECT_EQ(mistake("alias(f32[2]) {axis=1}"), "alias:1:16: error: op 'alias' has no attribute 'axis'");
  EXPECT_EQ(mistake("alias(f32[1,1,1,1,1,1,1,1,1])"), "alias:1:27: error: more than 8 dimensions");
  EXPECT_EQ(mistake("alias(f32[2]) f32"), "alias:1:15: error: expected the end of the example, got 'f32'");
  EXPECT_EQ(mistake("alias"), "alias:1:6: error: expected '(' after the op's name, got the end of the text");
}

}  // namespace
}  // namespace tapedeck
