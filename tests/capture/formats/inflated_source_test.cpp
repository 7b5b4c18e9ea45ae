// Tests reading of deflate streams out of the middle of other bytes: in any order, to the end, and until it is interrupted.
// npz_test.cpp tests streams that are wrong.
#include <tapedeck/capture/formats/inflated_source.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/interruption.h>

#include <tapedeck/tests/engine/messages.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const unsigned char*>(text.data()), text.size()}; }

// The block of a deflate stream that holds its bytes as they are, which needs no compressor (RFC 1951, 3.2.4).
std::string plain_block(const std::string& data, bool last) {
  const auto size = static_cast<unsigned>(data.size());
  std::string block = {last ? '\1' : '\0'};
  for (const unsigned number : {size, ~size}) block += {static_cast<char>(number & 255), static_cast<char>(number >> 8 & 255)};
  return block + data;
}

std::string read_range(const InflatedSource& source, std::uint64_t at, std::size_t size) {
  std::string text(size, '?');
  source.read(at, {reinterpret_cast<unsigned char*>(text.data()), size});
  return text;
}

TEST(InflatedSource, ReadsInAnyOrder) {
  const std::string stream = plain_block("some ", false) + plain_block("", false) + plain_block("bytes", true);
  const std::string around = "before" + stream + "behind";
  const MemorySource file(bytes_of(around), "a file");
  const InflatedSource source(file, 6, stream.size(), 10, "inside");
  EXPECT_EQ(source.size(), 10u);
  EXPECT_EQ(source.path(), "inside");
  EXPECT_EQ(read_range(source, 0, 4), "some");
  EXPECT_EQ(read_range(source, 2, 5), "me by");
  EXPECT_EQ(read_range(source, 8, 2), "es");
  EXPECT_EQ(read_range(source, 8, 2), "es");
  EXPECT_EQ(read_range(source, 0, 10), "some bytes");
  EXPECT_EQ(source.finish(), 0x9f597f55u);
}

TEST(InflatedSource, TheStreamEndsWhereItShould) {
  const std::string stream = plain_block("abc", false) + plain_block("", true);
  const MemorySource file(bytes_of(stream), "a file");
  const auto fault = [&](std::uint64_t packed, std::uint64_t size) {
    return testing::message_or_none<FileError>([&] {
      const InflatedSource source(file, 0, packed, size, "x");
      read_range(source, 0, static_cast<std::size_t>(size));
      source.finish();
    });
  };
  EXPECT_EQ(fault(stream.size(), 3), "");
  EXPECT_EQ(fault(stream.size(), 2), "x: cannot be decompressed: its compressed bytes give more than 2 bytes");
  EXPECT_EQ(fault(stream.size(), 4), "x: cannot be decompressed: its compressed bytes give only 3 bytes");
  EXPECT_EQ(fault(stream.size() - 1, 3), "x: cannot be decompressed: its compressed bytes end in the middle");
  EXPECT_EQ(fault(7, 3), "x: cannot be decompressed: its compressed bytes end in the middle");
  EXPECT_EQ(fault(0, 0), "x: cannot be decompressed: its compressed bytes end in the middle");
}

struct StopLater final : StopCondition {
  int questions = 0;
  bool must_stop() noexcept override { return ++questions > 3; }
};

// Memory heeds nothing, so it is the decompression that stops.
TEST(InflatedSource, HeedsAnInterruption) {
  std::string stream;
  for (int i = 0; i < 20; ++i) stream += plain_block(std::string(60'000, 'x'), i == 19);
  const MemorySource file(bytes_of(stream), "a file");
  const InflatedSource source(file, 0, stream.size(), 1'200'000, "x");
  StopLater condition;
  {
    const HeedHere heed(condition);
    EXPECT_THROW(read_range(source, 0, 1'200'000), Cancelled);
  }
  EXPECT_EQ(condition.questions, 4);
  EXPECT_EQ(read_range(source, 0, 1'200'000), std::string(1'200'000, 'x'));
}

}  // namespace
}  // namespace tapedeck
