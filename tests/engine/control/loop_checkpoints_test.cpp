// The number of entries on the tape of a loop, for all numbers of passes that an attribute can hold.
#include <tapedeck/engine/control/loop_checkpoints.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace tapedeck {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// Counts the carries that exist at once.
struct Counter {
  std::int64_t now = 0, most = 0;
};
class Carry {
 public:
  Carry() = default;
  explicit Carry(Counter* counter) : counter_(counter) { add(1); }
  Carry(const Carry& o) : counter_(o.counter_), shared_(o.shared_) {}
  Carry& operator=(const Carry& o) = default;

 private:
  void add(std::int64_t n) {
    counter_->now += n;
    counter_->most = std::max(counter_->most, counter_->now);
    shared_ = std::shared_ptr<void>(nullptr, [c = counter_, n](void*) { c->now -= n; });
  }
  Counter* counter_ = nullptr;
  std::shared_ptr<void> shared_;
};

TEST(LoopCheckpoints, AWalkNeedsNoMoreEntriesThanTheTapeHas) {
  for (const std::int64_t checkpoint : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, std::int64_t{100}, kLargest - 1,
                                        kLargest, kCheckpointSqrt, kCheckpointLog})
    for (const std::int64_t trips : {0, 1, 2, 3, 5, 17, 64}) {
      Counter counter;
      walk_back(
          trips, checkpoint, Carry(&counter), [&](const Carry&, std::int64_t) { return Carry(&counter); },
          [](const Carry&, std::int64_t) {});
      EXPECT_LE(counter.most, std::max<std::int64_t>(tape_entries(trips, checkpoint), 1)) << trips << " passes, " << checkpoint;
    }
}

TEST(LoopCheckpoints, TheNumberOfEntriesDoesNotOverflow) {
  EXPECT_EQ(tape_entries(5, kLargest), tape_entries(5, 5));
  EXPECT_EQ(tape_entries(kLargest, 0), kLargest);
  EXPECT_EQ(tape_entries(kLargest, 1), kLargest);
  EXPECT_EQ(tape_entries(kLargest, kLargest), kLargest);
  EXPECT_EQ(tape_entries(kLargest, kCheckpointLog), 62 + 3);
  EXPECT_EQ(schedule::block_length(kLargest, kCheckpointSqrt), 3037000500);
  EXPECT_GT(tape_entries(kLargest, kCheckpointSqrt), 2 * 3037000499LL);
  EXPECT_EQ(schedule::reach(62, 62, kLargest), kLargest);
  EXPECT_EQ(schedule::reach(2, kLargest, kLargest), kLargest);
  EXPECT_EQ(schedule::reach(3, 4, kLargest), 35);
}

}  // namespace
}  // namespace tapedeck
