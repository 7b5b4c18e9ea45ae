// Tests the checksums of files and of lists of strings against checksum() of all bytes at once.
#include <tapedeck/capture/formats/checksum.h>
#include <tapedeck/capture/formats/file_checksum.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace tapedeck {
namespace {

std::string checksum_text_of(const std::string& text) {
  return checksum_text(checksum({reinterpret_cast<const unsigned char*>(text.data()), text.size()}));
}

TEST(FileChecksum, IsThatOfAllBytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f");
  for (const std::size_t size : {0, 1, (1 << 18) - 1, 1 << 18, (1 << 18) + 5}) {
    std::string text(size, 'a');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(file_checksum(path), checksum_text_of(text)) << size << " bytes";
  }
  EXPECT_THROW(file_checksum(folder.file("missing")), FileError);
}

TEST(StringsChecksum, DependsOnWhereAStringEnds) {
  EXPECT_EQ(strings_checksum({"ab", "c"}), strings_checksum({"ab", "c"}));
  EXPECT_NE(strings_checksum({"ab", "c"}), strings_checksum({"a", "bc"}));
  EXPECT_NE(strings_checksum({"ab", ""}), strings_checksum({"ab"}));
  EXPECT_NE(strings_checksum({"ab", "c"}), strings_checksum({"c", "ab"}));
}

}  // namespace
}  // namespace tapedeck
