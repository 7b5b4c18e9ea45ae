// The buffer between the program and the writer: it is bounded, counts what it drops, and keeps the highest number of bytes.
#include <gtest/gtest.h>
#include <tapedeck/capture/live/live_buffer.h>

#include <tapedeck/engine/ops/ops.h>

#include <thread>

namespace tapedeck::live {
namespace {

RanOp some_call(const Op& op) { return {op, {}, {"net.cpp", 3}, Name("fc1"), Phase::forward, false}; }

const Op& some_op() { return *find_op("relu"); }

TEST(LiveBuffer, DropsWhatDoesNotFitAndSaysSo) {
  LiveBuffer buffer;
  buffer.open(4096);
  for (int i = 0; i < 1000; ++i) buffer.ran(some_call(some_op()));
  Batch batch;
  buffer.take(&batch, false);
  EXPECT_LE(batch.bytes.size(), 4096u);
  EXPECT_EQ(batch.status.ops, 1000);
  std::uint64_t told = 0, dropped = 0;
  RecordReader reader;
  std::span<const unsigned char> rest(batch.bytes);
  Record record;
  for (std::size_t taken = 0; reader.next(rest, &record, &taken); rest = rest.subspan(taken)) {
    told += std::holds_alternative<OpRecord>(record);
    if (const auto* d = std::get_if<DroppedRecord>(&record)) dropped += d->count;
  }
  EXPECT_EQ(reader.damage(), "");
  EXPECT_GT(told, 10u);
  EXPECT_EQ(told + dropped, 1000u);
  EXPECT_EQ(batch.status.dropped, static_cast<std::int64_t>(dropped));
  buffer.ran(some_call(some_op()));  // there is room again
  buffer.take(&batch, false);
  EXPECT_FALSE(batch.bytes.empty());
  EXPECT_TRUE(batch.texts.empty());  // relu, net.cpp and fc1 are known
}

TEST(LiveBuffer, TakesNothingWhenClosed) {
  LiveBuffer buffer;
  buffer.open(1 << 20);
  buffer.close();
  buffer.ran(some_call(some_op()));
  buffer.stepped();
  Batch batch;
  buffer.take(&batch, true);
  EXPECT_TRUE(batch.bytes.empty());
  EXPECT_TRUE(batch.past.empty());
}

TEST(LiveBuffer, NumbersTheCallsOfSeveralThreads) {
  LiveBuffer buffer;
  buffer.open(1 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) buffer.ran(some_call(some_op()));
    });
  for (std::thread& t : threads) t.join();
  Batch batch;
  buffer.take(&batch, true);
  EXPECT_EQ(batch.status.ops, 2000);
  EXPECT_EQ(batch.texts.size(), 3u);
  std::uint64_t expected = 0;
  RecordReader reader;
  std::span<const unsigned char> rest(batch.bytes);
  Record record;
  for (std::size_t taken = 0; reader.next(rest, &record, &taken); rest = rest.subspan(taken))
    if (const auto* op = std::get_if<OpRecord>(&record)) {
      EXPECT_EQ(op->index, expected++);
    }
  EXPECT_EQ(expected, 2000u);
}

// The oracle is the list of all numbers.
TEST(ThinnedCurve, KeepsTheExtremesOfEveryPiece) {
  ThinnedCurve curve;
  std::vector<std::int64_t> all;
  for (int i = 0; i < 50000; ++i) {
    all.push_back((i * 7919) % 10007);
    curve.add(static_cast<std::uint64_t>(i), i, all.back(), static_cast<std::uint64_t>(i / 100));
  }
  const std::vector<PastRecord> pieces = curve.pieces();
  EXPECT_LE(pieces.size(), 2049u);
  EXPECT_GE(pieces.size(), 1000u);
  std::uint64_t at = 0;
  for (const PastRecord& p : pieces) {
    ASSERT_EQ(p.index, at);
    at += p.count;
    ASSERT_LE(at, all.size());
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(p.index), last = all.begin() + static_cast<std::ptrdiff_t>(at);
    EXPECT_EQ(p.lowest, *std::min_element(first, last));
    EXPECT_EQ(p.highest, *std::max_element(first, last));
  }
  EXPECT_EQ(at, all.size());
}

}  // namespace
}  // namespace tapedeck::live
