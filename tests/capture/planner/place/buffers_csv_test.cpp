// Tests the CSV form of buffer lists: every accepted spelling, and a clear error message for everything else.
#include <tapedeck/capture/planner/place/buffers_csv.h>

#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tapedeck {
namespace {

std::string message_of(const std::string& text) {
  return testing::message_or_none<ParseError>([&] { parse_buffers(text, "b.csv"); });
}

TEST(BufferCsv, ColumnsInAnyOrderAndTheirOtherNames) {
  for (const char* text :
       {"id,lower,upper,size\na,3,7,100\n", "size,upper,id,lower\n100,7,a,3\n", "buffer,start,end,size\na,3,6,100\n",
        "buffer_id,begin,end,size\r\na, 3 ,6,100\r\n", "\xEF\xBB\xBFid,lower,upper,size\na,3,7,100"}) {
    const BufferList list = parse_buffers(text, "b.csv", 64);
    ASSERT_EQ(list.buffers.size(), 1u) << text;
    EXPECT_EQ(list.buffers[0].bytes, 100);
    EXPECT_EQ(list.buffers[0].alignment, 64);
    EXPECT_EQ(list.buffers[0].hint, -1);
    EXPECT_EQ(list.buffers[0].fixed, -1);
  }
}

TEST(BufferCsv, LivesAreHalfOpenAndEndIsNot) {
  const auto meet = [](const std::string& text) {
    const BufferList list = parse_buffers(text, "b.csv");
    return list.buffers[1].birth <= list.buffers[0].death;
  };
  EXPECT_FALSE(meet("id,lower,upper,size\na,0,5,1\nb,5,9,1\n"));
  EXPECT_TRUE(meet("id,lower,end,size\na,0,5,1\nb,5,9,1\n"));
  EXPECT_TRUE(meet("id,lower,upper,size\na,-4000000000,5000000000,1\nb,4999999999,9000000000,1\n")) << "times beyond 32 bits";
}

TEST(BufferCsv, TheFirstBlankLineEndsTheList) {
  EXPECT_EQ(parse_buffers("id,lower,upper,size\na,0,1,1\n\nwhatever", "b.csv").buffers.size(), 1u);
  EXPECT_EQ(parse_buffers("id,lower,upper,size\na,0,1,1\n  \r\nb,0,1,1\n", "b.csv").buffers.size(), 1u);
  EXPECT_EQ(parse_buffers("id,lower,upper,size\n", "b.csv").buffers.size(), 0u);
  const struct {
    const char* tail;
    std::int64_t unread;
  } tails[] = {{"", 0}, {"\n", 0}, {"\n \n\r\n", 0}, {"\nwhatever", 1}, {"  \r\nb,0,1,1\n\n# c\n\n", 2}};
  for (const auto& t : tails)
    EXPECT_EQ(parse_buffers(std::string("id,lower,upper,size\na,0,1,1\n") + t.tail, "b.csv").unread_lines, t.unread) << t.tail;
}

// A message about any file at all must be short and printable.
TEST(BufferCsv, MessagesRepeatLittleAndNothingThatCannotBePrinted) {
  std::string bytes;
  for (int i = 0; i < 4000; ++i) bytes += static_cast<char>(i * 7 % 256);
  for (const std::string& text : {"TAPE" + bytes, "id,lower,upper,size\na,0,1," + std::string(500, 'x'),
                                  "id,lower,upper,size\n\x1b[31mred" + std::string(500, '\x7f') + ",2,1,8"}) {
    const std::string message = message_of(text);
    EXPECT_NE(message, "");
    EXPECT_LT(message.size(), 180u) << message;
    EXPECT_TRUE(std::all_of(message.begin(), message.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; })) << message;
  }
  EXPECT_NE(message_of("id,lower,upper,size\na,0,1,\x1b[31m\n").find("size '\\x1b[31m' is not"), std::string::npos);
}

TEST(BufferCsv, GapsHintsFixedOffsetsAlignments) {
  const BufferList list = parse_buffers(
      "id,lower,upper,size,gaps,hint,offset,alignment\na,0,10,8,7-9 2-4 4-5,24,,8\nb,2,5,8,,-1,16,\n", "b.csv", 4);
  const Tenant &a = list.buffers[0], &b = list.buffers[1];
  EXPECT_EQ(a.hint, 24);
  EXPECT_EQ(a.fixed, -1);
  EXPECT_EQ(a.alignment, 8);
  EXPECT_EQ(b.hint, -1);
  EXPECT_EQ(b.fixed, 16);
  EXPECT_EQ(b.alignment, 4);
  ASSERT_EQ(a.holes.size(), 2u);  // 2..4 and 7..8; `b` lives within the first
  EXPECT_EQ(a.holes[0].first, b.birth);
  EXPECT_EQ(a.holes[0].last, b.death);
  EXPECT_GT(a.holes[1].first, a.holes[0].last + 1);
  EXPECT_LT(a.holes[1].last, a.death);
}

// A window of zero bytes is a gap. A window of all bytes is not.
TEST(BufferCsv, GapsWithWindows) {
  const BufferList list =
      parse_buffers("id,lower,upper,size,gaps\na,0,10,8,2-4@0:0 5-7@0:8 8-9@3:3\nb,2,5,8,\nc,8,9,8,\n", "b.csv", 4);
  const Tenant& a = list.buffers[0];
  ASSERT_EQ(a.holes.size(), 2u);
  EXPECT_EQ(a.holes[0].first, list.buffers[1].birth);
  EXPECT_LT(a.holes[0].last, list.buffers[1].death);
  EXPECT_EQ(a.holes[1].first, list.buffers[2].birth);
  EXPECT_EQ(a.holes[1].last, list.buffers[2].death);
}

// A buffer of zero bytes fits anywhere, so its given offset is kept.
TEST(BufferCsv, OffsetsOfNothingAreKept) {
  const std::string text = "id,lower,upper,size,offset\na,0,2,5,\nb,1,3,0,64\n";
  const BufferList list = parse_buffers(text, "b.csv");
  EXPECT_EQ(print_buffers(list, place(list.buffers)), "id,lower,upper,size,offset\na,0,2,5,0\nb,1,3,0,64\n");
}

TEST(BufferCsv, WhatWasReadIsWrittenWithOffsets) {
  const BufferList list = parse_buffers("size,id,note,lower,upper\n5,a,x y,0,2\n6,b,,1,3\n", "b.csv");
  Offsets placed;
  placed.offsets = {6, 0};
  EXPECT_EQ(print_buffers(list, placed), "size,id,note,lower,upper,offset\n5,a,x y,0,2,6\n6,b,,1,3,0\n");
  placed.arena = {1, 0};
  EXPECT_EQ(print_buffers(list, placed), "size,id,note,lower,upper,offset,arena\n5,a,x y,0,2,6,1\n6,b,,1,3,0,0\n");
  const BufferList fixed = parse_buffers("id,lower,upper,size,offset\na,0,2,5,\nb,1,3,6,0\n", "b.csv");
  placed.arena.clear();
  EXPECT_EQ(print_buffers(fixed, placed), "id,lower,upper,size,offset\na,0,2,5,6\nb,1,3,6,0\n");
}

// Names of nodes contain commas and quotes. A field that was quoted is written with its quotes.
TEST(BufferCsv, QuotedFieldsHoldCommas) {
  const std::string text = "id,name,lower,upper,size\n\"a,1\",\"say \"\"x, y\"\"\",0,2,8\nb,\"\",1,3,\"16\"\n";
  const BufferList list = parse_buffers(text, "b.csv");
  ASSERT_EQ(list.buffers.size(), 2u);
  EXPECT_EQ(list.buffers[1].bytes, 16);
  Offsets placed;
  placed.offsets = {16, 0};
  EXPECT_EQ(print_buffers(list, placed),
            "id,name,lower,upper,size,offset\n\"a,1\",\"say \"\"x, y\"\"\",0,2,8,16\nb,\"\",1,3,\"16\",0\n");
  EXPECT_EQ(parse_buffers(print_buffers(list, placed), "b.csv").buffers[0].fixed, 16);
  EXPECT_THROW(parse_buffers("id,lower,upper,size\n\"a,0,1,8\n", "b.csv"), ParseError);
  EXPECT_THROW(parse_buffers("id,lower,upper,size\n\"a,0,1,8\nb\",0,1,8\n", "b.csv"), ParseError);
}

// Spreadsheets quote every field.
TEST(BufferCsv, QuotedColumns) {
  const BufferList list =
      parse_buffers("\"id\",\"lower\",\"upper\",\"size\",\"offset\"\n\"a\",\"0\",\"2\",\"8\",\"\"\n", "b.csv");
  ASSERT_EQ(list.buffers.size(), 1u);
  EXPECT_EQ(list.buffers[0].bytes, 8);
  EXPECT_EQ(shown_id(list, 0), "a");
  Offsets placed;
  placed.offsets = {16};
  EXPECT_EQ(print_buffers(list, placed), "\"id\",\"lower\",\"upper\",\"size\",\"offset\"\n\"a\",\"0\",\"2\",\"8\",16\n");
  EXPECT_EQ(message_of("\"id\",\"buffer\",lower,upper,size\n"), "b.csv:1: error: column 'buffer' says again what 'id' says");
  EXPECT_EQ(message_of("\"id\",\"start\",upper,size\na,x,2,8\n"), "b.csv:2: error: start 'x' is not a whole number");
}

// A list may have unknown columns. A name that is almost that of a known column is reported as a doubt.
TEST(BufferCsv, ColumnsThatMayBeMisspelt) {
  const auto doubts = [](const std::string& more) {
    return parse_buffers("id,lower,upper,size," + more + "\n", "b.csv").doubts;
  };
  EXPECT_EQ(doubts("aligment"), std::vector<std::string>{"column 'aligment' is not looked at: did you mean 'alignment'?"});
  EXPECT_EQ(doubts("GAPS,Offset"), (std::vector<std::string>{"column 'GAPS' is not looked at: did you mean 'gaps'?",
                                                             "column 'Offset' is not looked at: did you mean 'offset'?"}));
  EXPECT_EQ(doubts("offset,offsets,alignment,gaps,hint"), std::vector<std::string>{}) << "what is there already is not meant";
  EXPECT_EQ(doubts("offset,alignment,name,where,reason,node,phase,site,dtype,shape"), std::vector<std::string>{})
      << "the CSV of a plan";
}

TEST(BufferCsv, MistakesNameTheLine) {
  const std::string head = "id,lower,upper,size,alignment,gaps,hint,offset\n";
  const struct {
    std::string text, says;
  } cases[] = {
      {"", "b.csv:1: error: no header row"},
      {"\n", "b.csv:1: error: no header row"},
      {"id,lower,size\n", "b.csv:1: error: no column 'upper'"},
      {"1,2,3,4\n", "b.csv:1: error: no column 'id'"},
      {"id,buffer,lower,upper,size\n", "b.csv:1: error: column 'buffer' says again what 'id' says"},
      {"id,lower,upper,end,size\n", "both 'upper' and 'end'"},
      {"\x1F\x8B\x08", "gzip"},
      {head + "a,0,1,1\n", "b.csv:2: error: 4 fields, but the header has 8"},
      {head + "a,0,1,1,,,,\na,0,1,1,,,,\n", "b.csv:3: error: buffer a is there already"},
      {head + "a,0,1,1,,,,\nb,0,1,1,,,,\na,0,1,1,,,,\n", "b.csv:4: error: buffer a is there already, in line 2"},
      {head + ",0,1,1,,,,\n", "no id"},
      {head + "a,0,1,-1,,,,\n", "b.csv:2: error: size -1 is not within"},
      {head + "a,0,1,1.5,,,,\n", "size '1.5' is not a whole number"},
      {head + "a,0,1,,,,,\n", "size '' is not a whole number"},
      {head + "a,0,1,99999999999999999999,,,,\n", "size 99999999999999999999 is too large"},
      {head + "a,0,1,9223372036854775807,,,,\n",
       "b.csv:2: error: size 9223372036854775807 is not within 0..1152921504606846976"},
      {head + "a,0,1,9223372036854775808,,,,\n", "size 9223372036854775808 is too large"},
      {head + "a,0,1,-9223372036854775809,,,,\n", "size -9223372036854775809 is too small"},
      {head + "a,0,1,1152921504606846976,,,,\nb,0,1,1,,,,\n", "b.csv:3: error: the sizes up to here sum up to more than"},
      {head + "a,x,1,1,,,,\n", "lower 'x' is not a whole number"},
      {head + "a,0.5,1,1,,,,\n", "lower '0.5' is not a whole number"},
      {head + "a,0,4e3,1,,,,\n", "upper '4e3' is not a whole number"},
      {head + "a,0,,1,,,,\n", "upper '' is not a whole number"},
      {"buffer,start,end,size\na,x,1,1\n", "b.csv:2: error: start 'x' is not a whole number"},
      {"buffer,begin,end,size\na,0,9223372036854775807,1\n", "b.csv:2: error: end 9223372036854775807 is not within"},
      {head + "a,5,5,1,,,,\n", "buffer a is never alive"},
      {head + "a,5,2,1,,,,\n", "buffer a is never alive"},
      {head + "a,5,5,1,,,,\n", "upper 5 is not above lower 5"},
      {"id,start,end,size\na,5,4,1\n", "end 4 is not at or above start 5"},
      {head + "a,0,1,1,0,,,\n", "alignment 0 is not within"},
      {head + "a,0,1,1,,,-7,\n", "hint -7 is not within"},
      {head + "a,0,9,1,8,,,9\n", "offset 9 is not a multiple of the alignment, 8"},
      {head + "a,0,9,2,,2-4@0:1,,\n", "a-b@lo:hi"},
      {head + "a,0,9,2,,2-4@,,\n", "gap '2-4@' is not of the form"},
      {head + "a,0,9,2,,2-4@0:,,\n", "gap '2-4@0:' is not of the form"},
      {head + "a,0,9,2,,2-4@1:3,,\n", "its window is not within the 2 bytes"},
      {head + "a,0,9,2,,2-4@2:1,,\n", "its window is not within the 2 bytes"},
      {head + "a,0,9,2,,2@0:2,,\n", "gap '2' is not of the form a-b"},
      {head + "a,0,9,2,,2-11@0:2,,\n", "gap '2-11' is not within the life 0..9"},
      {head + "a,0,9,1,,3,,\n", "gap '3' is not of the form a-b"},
      {head + "a,0,9,1,,-,,\n", "gap '-' is not of the form a-b"},
      {head + "a,0,9,1,,3-,,\n", "gap '3-' is not of the form a-b"},
      {head + "a,0,9,1,,--3,,\n", "gap '--3' is not of the form a-b"},
      {head + "a,0,9,1,,1-x,,\n", "b.csv:2: error: gap '1-x' is not of the form a-b, of whole numbers"},
      {head + "a,0,9,1,,1-2;4-5,,\n", "gap '1-2;4-5' is not of the form a-b"},
      {head + "a,0,9,1,,3-99999999999999999999,,\n", "gap '3-99999999999999999999' is not within the life 0..9"},
      {head + "a,0,9,1,,5-3,,\n", "gap '5-3' is not within"},
      {head + "a,0,9,1,,5-12,,\n", "gap '5-12' is not within"},
      {head + "a,0,9,1,,0-4 3-9,,\n", "gaps leave nothing"},
  };
  for (const auto& c : cases) {
    const std::string message = message_of(c.text);
    EXPECT_NE(message.find(c.says), std::string::npos)
        << "for " << c.text << "\n  it says '" << message << "', not '" << c.says << "'";
  }
}

TEST(BufferCsv, CutAndScrambledListsAreReadOrRefused) {
  const std::string good = "id,lower,upper,size,alignment,gaps\na,0,10,100,64,2-4 6-7\nb,3,5,40,1,\nc,-2,7,1000,8,0-1\n";
  std::mt19937 random(1);
  for (std::size_t length = 0; length < good.size(); ++length) {
    std::string text = good.substr(0, length);
    message_of(text);  // any other exception fails the test
    for (int k = 0; k < 3 && length > 0; ++k) text[random() % length] = static_cast<char>(random() % 256);
    message_of(text);
  }
  EXPECT_EQ(message_of(good), "");
}

}  // namespace
}  // namespace tapedeck
