// Tests checksum() against values of the reference implementation of XXH64 and of earlier versions, and that a flipped bit
// changes the sum.
#include <tapedeck/capture/formats/checksum.h>

#include <gtest/gtest.h>

#include <string>

namespace tapedeck {
namespace {

std::uint64_t sum_of(std::string_view text, std::uint64_t seed = 0) {
  return checksum({reinterpret_cast<const unsigned char*>(text.data()), text.size()}, seed);
}

// Known answers of XXH64, as the reference implementation gives them.
TEST(Checksum, KnownAnswers) {
  EXPECT_EQ(sum_of(""), 0xef46db3751d8e999u);
  EXPECT_EQ(sum_of("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(sum_of("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(sum_of("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1u);
}

// Each sum is the seed of the next. An earlier version, whose code was different, computed this last value; files that it
// wrote must stay valid.
TEST(Checksum, KeepsTheValuesOfOldFiles) {
  std::string text(4097, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 131 + (i >> 3));
  std::uint64_t sum = 0;
  for (std::size_t n = 0; n <= text.size(); ++n) sum = sum_of(std::string_view(text).substr(0, n), sum);
  EXPECT_EQ(sum, 0xd446deb1b3c4f30cu);
}

TEST(Checksum, EveryBitCountsAtEveryLength) {
  for (std::size_t n = 1; n <= 80; ++n) {
    std::string text(n, 'x');
    const std::uint64_t whole = sum_of(text);
    for (std::size_t bit = 0; bit < n * 8; ++bit) {
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
      EXPECT_NE(sum_of(text), whole) << n << " bytes, bit " << bit;
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    }
    EXPECT_NE(sum_of(text, 1), whole);
  }
}

TEST(Checksum, TextAndBack) {
  EXPECT_EQ(checksum_text(0x0123456789abcdefu), "0123456789abcdef");
  EXPECT_EQ(parse_checksum("0123456789abcdef"), 0x0123456789abcdefu);
  EXPECT_EQ(parse_checksum("0123456789ABCDEF"), std::nullopt);
  EXPECT_EQ(parse_checksum("0123456789abcde"), std::nullopt);
  EXPECT_EQ(parse_checksum("0123456789abcdef0"), std::nullopt);
  EXPECT_EQ(parse_checksum("0123456789abcdeg"), std::nullopt);
}

}  // namespace
}  // namespace tapedeck
