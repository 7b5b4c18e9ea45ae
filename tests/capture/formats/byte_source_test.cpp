// Tests that ranges longer than one piece are compared with zero, and summed, as a whole.
#include <tapedeck/capture/formats/byte_source.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tapedeck {
namespace {

constexpr std::size_t kPiece = 1 << 18;  // the bytes that byte_source.cpp reads at once
constexpr std::size_t kSourceSize = 2 * kPiece + 100;

TEST(ByteSource, AllZeroLooksAtEveryPiece) {
  std::vector<unsigned char> bytes(kSourceSize, 0);
  const MemorySource source(bytes, "memory");
  EXPECT_TRUE(all_zero(source, 0, kSourceSize));
  EXPECT_TRUE(all_zero(source, 7, 0));
  for (const std::size_t at : {std::size_t{0}, kPiece - 1, kPiece, 2 * kPiece, kSourceSize - 1}) {
    bytes[at] = 1;
    EXPECT_FALSE(all_zero(source, 0, kSourceSize)) << at;
    EXPECT_TRUE(all_zero(source, 0, at)) << at;
    EXPECT_TRUE(all_zero(source, at + 1, kSourceSize - at - 1)) << at;
    bytes[at] = 0;
  }
}

TEST(ByteSource, TheSumOfPiecesIsThatOfTheWhole) {
  std::vector<unsigned char> bytes(kSourceSize);
  for (std::size_t i = 0; i < kSourceSize; ++i) bytes[i] = static_cast<unsigned char>(i * 37 + i / 251);
  const MemorySource source(bytes, "memory");
  EXPECT_EQ(checksum(source, 0, kSourceSize), checksum(Bytes(bytes)));
  EXPECT_EQ(checksum(source, 5, kPiece + 1), checksum(Bytes(bytes).subspan(5, kPiece + 1)));
  EXPECT_EQ(checksum(source, 5, 0), checksum(Bytes()));
}

}  // namespace
}  // namespace tapedeck
