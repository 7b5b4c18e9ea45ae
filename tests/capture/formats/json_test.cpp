// Tests the parts of JSON that no test of a file format reaches: sequences of UTF-8, and numbers that JSON does not have.
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

std::string encoded(std::uint32_t point, int bytes) {
  if (bytes == 1) return {static_cast<char>(point)};
  std::string text(static_cast<std::size_t>(bytes), '\0');
  for (int i = bytes - 1; i > 0; --i, point >>= 6)
    text[static_cast<std::size_t>(i)] = static_cast<char>(0x80u | (point & 0x3Fu));
  const unsigned lead = (0xFF00u >> bytes) & 0xFFu;  // as many ones as the sequence has bytes
  text[0] = static_cast<char>(lead | point);
  return text;
}

// The standard, by its definition: a code point is written in the fewest bytes, and there are no surrogates.
bool may_be_written(std::uint32_t point, int bytes) {
  const int fewest = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  return bytes == fewest && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
}

// Every code point that 1, 2, 3 or 4 bytes can hold. Of the 2^21 that 4 bytes hold every 7th is tried, and all near the bounds.
TEST(Json, Utf8IsWhatTheStandardSays) {
  const std::uint32_t ends[] = {0, 1u << 7, 1u << 11, 1u << 16, 1u << 21};
  for (int bytes = 1; bytes <= 4; ++bytes)
    for (std::uint32_t point = 0; point < ends[bytes]; ++point) {
      const bool near = point < 0x10100 || (point > 0x10FF00 && point < 0x110100);
      if (bytes == 4 && !near && point % 7 != 0) continue;
      const std::string text = encoded(point, bytes);
      ASSERT_EQ(valid_utf8(text), may_be_written(point, bytes)) << point << " in " << bytes << " bytes";
    }
}

TEST(Json, Utf8IsNotCutOffOrBrokenInside) {
  for (const std::uint32_t point : {0xE9u, 0x20ACu, 0xD7FFu, 0xE000u, 0x1F39Eu, 0x10FFFFu}) {
    const int bytes = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    const std::string text = encoded(point, bytes);
    EXPECT_TRUE(valid_utf8("a" + text + "b"));
    for (std::size_t length = 1; length < text.size(); ++length) {
      EXPECT_FALSE(valid_utf8(text.substr(0, length))) << point;
      for (const char wrong : {'\x00', '\x7F', '\xC0', '\xFF'}) {
        std::string broken = text;
        broken[length] = wrong;
        EXPECT_FALSE(valid_utf8(broken)) << point << " with another byte " << length;
      }
    }
  }
  for (int lead = 0xF5; lead <= 0xFF; ++lead)
    EXPECT_FALSE(valid_utf8(std::string(1, static_cast<char>(lead)) + "\x80\x80\x80"));
  EXPECT_FALSE(valid_utf8("\x80"));
  EXPECT_EQ(to_utf8("a\xC0z"), "a\xEF\xBF\xBDz");
}

TEST(Json, InfinitiesAndNanAreStrings) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  JsonWriter writer;
  writer.open('[').value(kInfinity).value(-kInfinity).value(std::nan("")).value(0.1).close(']');
  const std::string text = writer.take();
  EXPECT_EQ(text, R"(["inf","-inf","nan",0.1])");
  const JsonDocument document(text);
  std::vector<double> read;
  for (const JsonValue value : document.root().items()) read.push_back(value.as_real());
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(read[0], kInfinity);
  EXPECT_EQ(read[1], -kInfinity);
  EXPECT_TRUE(std::isnan(read[2]));
  EXPECT_EQ(read[3], 0.1);
  for (const char* other : {"\"-infinity\"", "true", "null", "[]", "{}"}) {
    const JsonDocument wrong(other);
    EXPECT_TRUE(mentions(message_of<JsonError>([&] { wrong.root().as_real(); }), "a number")) << other;
  }
}

TEST(Json, AMemberIsFoundByItsKeyOrNamedInTheError) {
  const JsonDocument document(R"({"a": 1, "b": {"a": 2}})");
  EXPECT_EQ(document.root().member("a").as_integer(), 1);
  EXPECT_EQ(document.root().member("b").member("a").as_integer(), 2);
  EXPECT_TRUE(mentions(message_of<JsonError>([&] { document.root().member("c"); }), "there is no c"));
  EXPECT_FALSE(document.root().find("c").has_value());
}

}  // namespace
}  // namespace tapedeck
