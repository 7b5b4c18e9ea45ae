// Tests the largest batch: the search against a walk over all batches, and a file's answer against plans of the same graph with
// larger values.
#include <tapedeck/tests/capture/planner_graphs.h>

#include <tapedeck/capture/planner/largest_batch.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>

#include <gtest/gtest.h>

#include <set>

namespace tapedeck {
namespace {

TEST(LargestBatch, IsTheLastThatFits) {
  for (std::int64_t most : {1, 2, 7, 100})
    for (std::int64_t last = 0; last <= most; ++last)
      for (std::int64_t guess : {std::int64_t{1}, last, most, std::int64_t{1000}}) {
        std::set<std::int64_t> asked;
        const LargestBatch found = largest_batch(guess, most, [&](std::int64_t batch) {
          EXPECT_TRUE(batch >= 1 && batch <= most) << batch;
          EXPECT_TRUE(asked.insert(batch).second) << "asked twice: " << batch;
          return BatchPoint{batch, batch <= last, 10 * batch, 1.0, batch <= last ? "" : "too large"};
        });
        EXPECT_EQ(found.best.batch, last) << "guess " << guess << ", most " << most;
        EXPECT_EQ(found.next.batch, last + 1);
        EXPECT_FALSE(found.next.obstacle.empty());
        EXPECT_LE(asked.size(), 16u);
      }
}

// A chain whose values have `rows` rows of 40 bytes each.
Graph chain_of(std::int64_t rows) { return test::chain(12, static_cast<int>(40 * rows)); }

PlanOptions unaligned() {
  PlanOptions options;
  options.alignment = 1;
  return options;
}

// The graph has no state and its microseconds stand in its text, so a batch of the file is exactly a graph with longer values.
TEST(LargestBatch, OfAFileIsThatOfItsGraphWithMoreRows) {
  for (const double limit : {1.0, 1.15, 1.4, 3.0}) {
    const BatchQuestion question{40 * 12 * 50, 0, limit};
    const LargestBatch found = largest_batch(chain_of(10), 10, question, unaligned());
    ASSERT_GT(found.best.batch, 10);
    for (const std::int64_t rows : {found.best.batch, found.best.batch + 1}) {
      PlanOptions options = unaligned();
      options.budget = question.memory;
      const BatchPoint point = batch_point(rows, make_plan(chain_of(rows), options), question);
      EXPECT_EQ(point.fits, rows == found.best.batch) << rows << " rows, limit " << limit << ": " << point.obstacle;
    }
    EXPECT_LE(found.best.cost_ratio, limit);
    EXPECT_LE(found.best.peak_bytes, question.memory);
    EXPECT_LE(found.keep_all_batch, found.best.batch);
  }
}

TEST(LargestBatch, FixedBytesAndStateAreTheSameForEveryBatch) {
  const Graph graph = parse(R"(graph g(%x: u8[100]) state(%w: u8[1000]) {
    %a: u8[100] = opaque(%x, %w) {us=1.0}
    %b: u8[100] = opaque(%a) {us=1.0}
    return %b
  })",
                            "state");
  // A row is 100 bytes of %x, 100 of %b and 100 of %a.
  EXPECT_EQ(largest_batch(graph, 1, {1000 + 50 + 300 * 7, 50, 1.0}, unaligned()).best.batch, 7);
  EXPECT_EQ(largest_batch(graph, 1, {1000 + 50 + 300 * 7 - 1, 50, 1.0}, unaligned()).best.batch, 6);
  const LargestBatch none = largest_batch(graph, 1, {1000, 50, 1.0}, unaligned());
  EXPECT_EQ(none.best.batch, 0);
  EXPECT_EQ(none.next.batch, 1);
  EXPECT_NE(none.next.obstacle.find("1050"), std::string::npos) << none.next.obstacle;
}

TEST(LargestBatch, RefusesQuestionsThatMakeNoSense) {
  const Graph graph = chain_of(1);
  EXPECT_THROW(largest_batch(graph, 0, {100, 0, 1.0}), UsageError);
  EXPECT_THROW(largest_batch(graph, 1, {0, 0, 1.0}), UsageError);
  EXPECT_THROW(largest_batch(graph, 1, {100, -1, 1.0}), UsageError);
  EXPECT_THROW(largest_batch(graph, 1, {100, 0, 0.5}), UsageError);
}

}  // namespace
}  // namespace tapedeck
