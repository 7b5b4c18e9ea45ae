// Tests reading of gzip: files that another program made, members one after another, and everything that is wrong.
#include <tapedeck/capture/formats/gzip.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>

namespace tapedeck {
namespace {

// "some text\n", and 100,000 zeros, by gzip -9 of Python.
constexpr char kText[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2b\xce\xcf\x4d\x55\x28\x49\xad\x28\xe1\x02\x00\xbc\xe6\x2c\x19"
    "\x0a\x00\x00\x00";
constexpr char kZeros[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\xf5\x4f\x6d\x0d\x0f\xa0\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x57\x03\x7d\x95\x11\xd4\xa0\x86"
    "\x01\x00";
const std::string text(kText, sizeof kText - 1), zeros(kZeros, sizeof kZeros - 1);

std::string fault(const std::string& packed, std::size_t most = kMostTextBytes) {
  return testing::message_or_none<FileError>([&] { gunzip(packed, "a.gz", most); });
}

TEST(Gzip, WhatAnotherProgramMade) {
  EXPECT_EQ(gunzip(text, "a.gz"), "some text\n");
  EXPECT_EQ(gunzip(zeros, "a.gz"), std::string(100000, '\0'));
  EXPECT_EQ(unpacked_text(text, "a.gz"), "some text\n");
  EXPECT_EQ(unpacked_text("plain", "a.gz"), "plain");
  EXPECT_EQ(unpacked_text("", "a.gz"), "");
}

TEST(Gzip, MembersAndZerosBehindThem) {
  EXPECT_EQ(gunzip(text + text, "a.gz"), "some text\nsome text\n");
  EXPECT_EQ(gunzip(text + zeros + text, "a.gz").size(), 100020u);
  EXPECT_EQ(gunzip(text + std::string(512, '\0'), "a.gz"), "some text\n");
  EXPECT_EQ(fault(text + "more"), "a.gz: cannot be decompressed: 4 bytes follow the end of its compressed data");
}

TEST(Gzip, NoMoreComesOutThanIsAllowed) {
  EXPECT_EQ(fault(zeros, 100000), "");
  EXPECT_EQ(fault(zeros, 99999), "a.gz: cannot be decompressed: it gives more than 99999 bytes, the most for a text");
  EXPECT_EQ(fault(zeros + text, 100000), "a.gz: cannot be decompressed: it gives more than 100000 bytes, the most for a text");
  EXPECT_EQ(fault(text, 0), "a.gz: cannot be decompressed: it gives more than 0 bytes, the most for a text");
  std::string many;
  for (int i = 0; i < 40; ++i) many += zeros;
  EXPECT_EQ(gunzip(many, "a.gz").size(), 4'000'000u);
  EXPECT_MENTIONS(fault(many, 3'999'999), "more than 3999999 bytes");
}

TEST(Gzip, CutOffOrDamagedAnywhere) {
  for (std::size_t n = 2; n < text.size(); ++n)
    EXPECT_EQ(fault(text.substr(0, n)), "a.gz: cannot be decompressed: its compressed bytes end in the middle") << n;
  for (std::size_t at = 10; at < text.size(); ++at) {  // behind the header, whose time and system nothing depends on
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    EXPECT_MENTIONS(fault(damaged), "a.gz: cannot be decompressed: ") << at;
  }
  EXPECT_EQ(fault("plain"), "a.gz: cannot be decompressed: it is damaged (incorrect header check)");
}

}  // namespace
}  // namespace tapedeck
