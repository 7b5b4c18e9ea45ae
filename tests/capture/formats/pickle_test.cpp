// Tests the bytes of a pickle, opcode by opcode, against the definitions in Python's pickletools.py. tool/trace_test.sh
// tests that Python reads whole files.
#include <tapedeck/capture/formats/pickle.h>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tapedeck {
namespace {

std::string bytes(std::initializer_list<int> list) { return {list.begin(), list.end()}; }
template <class T>
std::string pickled(const T& what) {
  PickleWriter out;
  out.value(what);
  return out.take();
}
std::string framed(const std::string& body) { return bytes({0x80, 2}) + body + "."; }

TEST(Pickle, IntegersTakeTheShortestOpcodeThatHoldsThem) {
  EXPECT_EQ(pickled(std::int64_t{0}), framed(bytes({'K', 0})));
  EXPECT_EQ(pickled(std::int64_t{255}), framed(bytes({'K', 0xff})));
  EXPECT_EQ(pickled(std::int64_t{256}), framed(bytes({'M', 0, 1})));
  EXPECT_EQ(pickled(std::int64_t{65535}), framed(bytes({'M', 0xff, 0xff})));
  EXPECT_EQ(pickled(std::int64_t{65536}), framed(bytes({'J', 0, 0, 1, 0})));
  EXPECT_EQ(pickled(std::int64_t{-1}), framed(bytes({'J', 0xff, 0xff, 0xff, 0xff})));
  EXPECT_EQ(pickled(std::int64_t{std::numeric_limits<std::int32_t>::max()}), framed(bytes({'J', 0xff, 0xff, 0xff, 0x7f})));
  EXPECT_EQ(pickled(std::int64_t{1} << 31), framed(bytes({0x8a, 8, 0, 0, 0, 0x80, 0, 0, 0, 0})));
  EXPECT_EQ(pickled(std::int64_t{0x7f0000000000}), framed(bytes({0x8a, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0})));
  EXPECT_EQ(pickled(std::numeric_limits<std::int64_t>::min()), framed(bytes({0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 0x80})));
}

TEST(Pickle, BooleansAndNone) {
  EXPECT_EQ(pickled(true), framed(bytes({0x88})));
  EXPECT_EQ(pickled(false), framed(bytes({0x89})));
  PickleWriter out;
  out.none();
  EXPECT_EQ(out.take(), framed("N"));
}

TEST(Pickle, StringsComeFromTheMemoTheSecondTime) {
  PickleWriter out;
  out.begin_list().value("ab").end_item().value("c").end_item().value("ab").end_item();
  const std::string ab = bytes({'X', 2, 0, 0, 0, 'a', 'b', 'q', 0, 'a'}), c = bytes({'X', 1, 0, 0, 0, 'c', 'q', 1, 'a'});
  EXPECT_EQ(out.take(), framed("]" + ab + c + bytes({'h', 0, 'a'})));
}

TEST(Pickle, TheMemoGoesOnBehindItsShortIndices) {
  PickleWriter out;
  out.begin_list();
  for (int i = 0; i < 257; ++i) out.value(std::to_string(i)).end_item();
  out.value("256").end_item().value("255").end_item();
  const std::string all = out.take();
  EXPECT_EQ(all.substr(all.size() - 9), bytes({'j', 0, 1, 0, 0, 'a', 'h', 255, 'a', '.'}).substr(1));
  EXPECT_NE(all.find(bytes({'X', 3, 0, 0, 0, '2', '5', '6', 'r', 0, 1, 0, 0, 'a'})), std::string::npos);
}

TEST(Pickle, DictionariesAndListsNest) {
  PickleWriter out;
  out.begin_dict().key("k").begin_list().begin_dict().end_item().end_member();
  EXPECT_EQ(out.take(), framed("}" + bytes({'X', 1, 0, 0, 0, 'k', 'q', 0}) + "]}as"));
}

TEST(Pickle, WhatIsNotUtf8IsReplaced) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(pickled(std::string_view("gr\xC3\xB6\xC3")),
            framed(bytes({'X', 7, 0, 0, 0}) + "gr\xC3\xB6" + mark + bytes({'q', 0})));
  EXPECT_EQ(pickled(std::string_view("\xFF\xF0\x9F\x98\x80")),
            framed(bytes({'X', 7, 0, 0, 0}) + mark + "\xF0\x9F\x98\x80" + bytes({'q', 0})));
}

}  // namespace
}  // namespace tapedeck
