// Tests the log with an owner whose blocks hold one number each. The result of a call is a hash of the numbers of its operands.
// A block that the program holds must have the number that it would have if no block had ever been evicted.
#include <tapedeck/engine/eviction/eviction_log.h>

#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

namespace tapedeck {
namespace {

using Block = EvictionLog::Block;

struct NoRoom {};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15u + (a >> 7); }

class Numbers final : public EvictionLog::Owner {
 public:
  EvictionLog log{*this};
  std::int64_t limit = std::numeric_limits<std::int64_t>::max(), used = 0;
  int runs = 0;

  Block outside(std::int64_t bytes, std::uint64_t number) {
    make_room(bytes);
    const Block b = log.add_block(bytes);
    put(b, number);
    return b;
  }

  std::vector<Block> call(const std::vector<Block>& operands, const std::vector<std::int64_t>& bytes, double cost = 1,
                          std::uint64_t salt = 1) {
    std::size_t locked = 0;
    try {
      for (; locked < operands.size(); ++locked) {
        log.read(operands[locked]);
        log.lock(operands[locked]);
      }
      std::int64_t all = 0;
      for (std::int64_t b : bytes) all += b;
      make_room(all);
    } catch (...) {
      for (std::size_t i = 0; i < locked; ++i) log.unlock(operands[i]);
      throw;
    }
    std::vector<Block> results(bytes.size());
    const EvictionLog::Call c = log.add_call(operands, bytes, cost, results);
    salt_[c] = salt;
    for (std::size_t k = 0; k < results.size(); ++k) {
      put(results[k], result_of(c, k));
    }
    for (Block b : operands) log.unlock(b);
    return results;
  }

  std::uint64_t read(Block b) {
    log.read(b);
    return numbers_.at(b);
  }

  void write(Block b, std::uint64_t number) {
    log.before_write(b);
    numbers_.at(b) = number;
  }

  void free(Block b) noexcept override {
    EXPECT_EQ(numbers_.erase(b), 1u) << "a block without bytes is freed";
    used -= log.bytes(b);
  }
  void forget(Block b) noexcept override { numbers_.erase(b); }
  void forget_call(EvictionLog::Call c) noexcept override { salt_.erase(c); }

  void run(EvictionLog::Call c, std::span<const Block> results) override {
    ++runs;
    for (Block b : log.operands(c)) ASSERT_EQ(numbers_.count(b), 1u) << "an operand is not resident";
    std::int64_t bytes = 0;
    for (Block b : results) bytes += log.bytes(b);
    make_room(bytes);
    for (std::size_t k = 0; k < log.results(c).size(); ++k)
      if (std::find(results.begin(), results.end(), log.results(c)[k]) != results.end())
        put(log.results(c)[k], result_of(c, k));
  }

 private:
  void put(Block b, std::uint64_t number) {
    EXPECT_EQ(numbers_.count(b), 0u) << "a resident block is made again";
    numbers_[b] = number;
    used += log.bytes(b);
    EXPECT_LE(used, limit);
  }
  void make_room(std::int64_t bytes) {
    if (used + bytes > limit) log.evict_bytes(used + bytes - limit);
    if (used + bytes > limit) throw NoRoom();
  }
  std::uint64_t result_of(EvictionLog::Call c, std::size_t k) const {
    std::uint64_t hash = mixed(salt_.at(c), k + 1);
    for (Block b : log.operands(c)) hash = mixed(hash, numbers_.at(b));
    return hash;
  }

  std::map<Block, std::uint64_t> numbers_;  // of resident blocks
  std::map<EvictionLog::Call, std::uint64_t> salt_;
};

TEST(EvictionLog, ComputesAnEvictedChainAgainAndOnlyWhatIsMissing) {
  Numbers n;
  const Block x = n.outside(8, 7);
  const Block a = n.call({x}, {8})[0], b = n.call({a}, {8})[0], c = n.call({b}, {8})[0];
  const std::uint64_t number = n.read(c);
  EXPECT_TRUE(n.log.evict(c));
  EXPECT_TRUE(n.log.evict(a));
  EXPECT_EQ(n.read(c), number);
  EXPECT_EQ(n.runs, 1) << "b was resident";
  EXPECT_TRUE(n.log.evict(b));
  EXPECT_TRUE(n.log.evict(c));
  EXPECT_EQ(n.read(c), number);
  EXPECT_EQ(n.runs, 4);
  EXPECT_EQ(n.log.counts().recomputed, 4);
  EXPECT_EQ(n.log.counts().evictions, 4);
  EXPECT_FALSE(n.log.evict(x)) << "no call makes x";
}

constexpr int kDeepChain =
    test::seeds(200000);  // a recursion over an eighth of it, in the larger frames of sanitizers, has no room either

TEST(EvictionLog, ADeepChainIsComputedAgainWithoutRecursion) {
  Numbers n;
  std::vector<Block> chain{n.outside(8, 1)};
  for (int i = 0; i < kDeepChain; ++i) chain.push_back(n.call({chain.back()}, {8})[0]);
  const std::uint64_t last = n.read(chain.back());
  for (Block b : chain) n.log.evict(b);
  EXPECT_EQ(n.read(chain.back()), last);
  EXPECT_EQ(n.runs, kDeepChain);
  for (Block b : chain) n.log.let_go(b);
  EXPECT_TRUE(n.log.empty());
  EXPECT_EQ(n.used, 0);
}

TEST(EvictionLog, TheBlockThatCostsLeastForItsBytesGoesFirst) {
  Numbers n;
  const Block x = n.outside(1, 7);
  const Block dear = n.call({x}, {100}, 100)[0], cheap = n.call({x}, {100}, 1)[0], small = n.call({x}, {1}, 1)[0];
  n.call({x}, {1}, 1000);  // time passes
  EXPECT_EQ(n.log.evict_bytes(1), 100);
  EXPECT_FALSE(n.log.is_resident(cheap));
  EXPECT_TRUE(n.log.is_resident(dear) && n.log.is_resident(small));
}

// A program of values %a = call(x) and %b = call(%a), all of which it holds, and the scores of its blocks by the formula at the
// head of eviction_log.h, computed anew for every question.
class ScoredProgram {
 public:
  explicit ScoredProgram(unsigned seed) : random_(seed) {
    const Block x = n_.outside(1000, 1);
    for (int i = 0; i < 30; ++i) {
      const std::size_t a = add(x, kNoOperand);
      for (std::uint64_t readers = random_() % 3; readers > 0; --readers) add(blocks_[a].block, a);
    }
  }

  void read_one() {
    const std::size_t i = random_() % blocks_.size();
    if (!is_resident(i)) {
      if (now_ - blocks_[i].used < 0.3 * now_) reuse_ = std::max(reuse_, now_ - blocks_[i].used);
      if (const std::size_t a = blocks_[i].operand; a != kNoOperand) {
        if (!is_resident(a)) now_ += blocks_[a].cost;
        blocks_[a].used = now_ + blocks_[i].cost;
      }
      now_ += blocks_[i].cost;
    }
    blocks_[i].used = now_;
    n_.read(blocks_[i].block);
  }

  // Evicts one block and expects that it is the block with the smallest score.
  void evict_one() {
    std::size_t least = blocks_.size();
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (is_resident(i) && (least == blocks_.size() || score(i) < score(least))) least = i;
    n_.log.evict_bytes(1);
    EXPECT_FALSE(is_resident(least));
  }

  std::int64_t evictions() const { return n_.log.counts().evictions; }

 private:
  struct Scored {
    Block block;
    std::size_t operand;
    double cost, bytes, used;
  };
  static constexpr std::size_t kNoOperand = static_cast<std::size_t>(-1);

  std::size_t add(Block from, std::size_t operand) {
    const auto bytes = static_cast<std::int64_t>(300 + random_() % 2000);
    const double cost = 1 + static_cast<double>(random_() % 1000) / 7;
    if (operand != kNoOperand) blocks_[operand].used = now_;
    blocks_.push_back({n_.call({from}, {bytes}, cost)[0], operand, cost, static_cast<double>(bytes), now_});
    now_ += cost;
    return blocks_.size() - 1;
  }

  bool is_resident(std::size_t i) const { return n_.log.is_resident(blocks_[i].block); }

  double score(std::size_t i) const {
    const Scored& at = blocks_[i];
    double cost = at.cost;
    if (at.operand != kNoOperand && !is_resident(at.operand)) cost += 0.55 * blocks_[at.operand].cost;
    for (std::size_t k = 0; k < blocks_.size(); ++k)
      if (blocks_[k].operand == i && !is_resident(k)) cost += 0.15 * blocks_[k].cost;
    if (now_ - at.used < reuse_) cost += 1.5 * at.cost;
    return cost / (std::pow(at.bytes, 0.8) * (now_ - at.used + 0.3 * now_));
  }

  Numbers n_;
  std::mt19937 random_;
  std::vector<Scored> blocks_;
  double now_ = 0, reuse_ = 0;
};

TEST(EvictionLog, TheBlockWithTheSmallestScoreGoesWhateverWasReadAndEvictedBefore) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(test::seeds(40)); ++seed) {
    ScoredProgram program(seed);
    std::mt19937 random(seed);
    for (int step = 0; step < 200 && !HasFailure(); ++step) random() % 2 ? program.read_one() : program.evict_one();
    EXPECT_GT(program.evictions(), 60);
  }
}

TEST(EvictionLog, ABlockThatNobodyNeedsGoesFirst) {
  Numbers n;
  const Block x = n.outside(1000, 1);
  const Block dear = n.call({x}, {1000}, 100)[0], held = n.call({dear}, {1000}, 100)[0], cheap = n.call({x}, {1000}, 1)[0];
  n.log.let_go(dear);
  n.log.evict(held);
  n.read(held);
  ASSERT_TRUE(n.log.is_resident(dear)) << "it ran again for the other, and nobody needs it now";
  EXPECT_EQ(n.log.evict_bytes(1000), 1000);
  EXPECT_FALSE(n.log.is_resident(dear));
  n.read(held);

  n.log.evict(held);
  n.read(held);
  n.log.evict(held);
  ASSERT_TRUE(n.log.is_resident(dear));
  EXPECT_EQ(n.log.evict_bytes(1000), 1000);
  EXPECT_TRUE(n.log.is_resident(dear)) << "an evicted block that is held is computed from it";
  EXPECT_FALSE(n.log.is_resident(cheap));
}

TEST(EvictionLog, ABlockIsOfNoUseOnceTheProgramLetsGoOfAllThatIsComputedFromIt) {
  for (const bool lets_go : {false, true}) {
    Numbers n;
    const Block x = n.outside(1000, 1);
    const Block dear = n.call({x}, {1000}, 100)[0], held = n.call({dear}, {1000}, 100)[0];
    n.log.pin(n.call({held}, {1000}, 1)[0]);
    const Block cheap[] = {n.call({x}, {1000}, 1)[0], n.call({x}, {1000}, 1)[0]};
    n.log.let_go(dear);
    n.log.evict(held);
    n.read(held);
    n.log.evict(held);
    EXPECT_EQ(n.log.evict_bytes(1000), 1000);
    ASSERT_TRUE(n.log.is_resident(dear)) << "the program holds a block that is computed from it";
    if (lets_go) n.log.let_go(held);
    EXPECT_EQ(n.log.evict_bytes(1000), 1000);
    EXPECT_EQ(n.log.is_resident(dear), !lets_go);
    EXPECT_EQ(n.log.is_resident(cheap[0]) || n.log.is_resident(cheap[1]), lets_go);
  }
}

TEST(EvictionLog, ABlockThatWasUsedLatelyStaysOnceSuchABlockWasReadAgain) {
  for (const bool was_read_again : {false, true}) {
    Numbers n;
    const Block x = n.outside(1000, 1);
    const Block old = n.call({x}, {1000}, 20)[0], other = n.call({x}, {1000}, 980)[0];
    n.read(other);
    n.log.pin(n.call({x}, {1000}, 5)[0]);
    if (was_read_again) {
      n.log.evict(other);
      n.read(other);
    }
    n.log.pin(other);
    const Block lately = n.call({x}, {1000}, 4)[0];
    EXPECT_EQ(n.log.evict_bytes(1000), 1000);
    EXPECT_EQ(n.log.is_resident(lately), was_read_again);
    EXPECT_EQ(n.log.is_resident(old), !was_read_again);
  }
}

TEST(EvictionLog, TheOtherResultOfACallThatMustRunAgainGoesForNothing) {
  Numbers n;
  const Block x = n.outside(1000, 1);
  const std::vector<Block> two = n.call({x}, {8000, 2000}, 100);
  const Block cheap = n.call({x}, {2000}, 1)[0];
  n.log.evict(two[0]);
  EXPECT_EQ(n.log.evict_bytes(2000), 2000);
  EXPECT_FALSE(n.log.is_resident(two[1]));
  EXPECT_TRUE(n.log.is_resident(cheap));
}

TEST(EvictionLog, PinnedAndLockedBlocksStay) {
  Numbers n;
  const Block x = n.outside(1, 7), a = n.call({x}, {8})[0], b = n.call({x}, {8})[0];
  n.log.pin(a);
  n.log.lock(b);
  EXPECT_EQ(n.log.evict_bytes(1), 0);
  n.log.unlock(b);
  n.log.unpin(a);
  EXPECT_EQ(n.log.evict_bytes(16), 16);
}

TEST(EvictionLog, AWriteFirstBringsBackWhatIsComputedFromTheOldBytes) {
  Numbers n;
  const Block x = n.outside(8, 7), a = n.call({x}, {8})[0], b = n.call({a}, {8})[0], c = n.call({x}, {8})[0];
  const std::uint64_t old_b = n.read(b), old_c = n.read(c);
  n.log.evict(b);
  n.log.let_go(a);  // b hangs on x through a, which nobody holds
  n.log.evict(c);
  n.write(x, 8);
  EXPECT_EQ(n.read(b), old_b);
  EXPECT_EQ(n.read(c), old_c);
  EXPECT_FALSE(n.log.can_be_evicted(b)) << "its operand's bytes are gone";
  const Block d = n.call({x}, {8})[0];
  const std::uint64_t new_d = n.read(d);
  EXPECT_TRUE(n.log.evict(d));
  EXPECT_EQ(n.read(d), new_d);
}

// A loop of p = update(p, gradient(p)): the log keeps no old p.
TEST(EvictionLog, AChainOfUpdatesKeepsNeitherOldBlocksNorTheirCalls) {
  Numbers n;
  Block p = n.outside(100, 1);
  for (int step = 0; step < 1000; ++step) {
    const Block h = n.call({p}, {1000})[0], g = n.call({h, p}, {100})[0], next = n.call({p, g}, {100})[0];
    for (Block b : {h, g, p}) n.log.let_go(b);
    p = next;
    EXPECT_LE(n.used, 300);
  }
  n.log.let_go(p);
  EXPECT_TRUE(n.log.empty());
}

TEST(EvictionLog, AChainOfUpdatesWithSmallInputsKeepsNeitherThemNorItsPast) {
  Numbers n;
  Block p = n.call({n.outside(100, 1)}, {100})[0];
  std::vector<Block> losses;
  for (int step = 0; step < 1000; ++step) {
    const Block x = n.outside(10, 2), h = n.call({x, p}, {1000})[0], next = n.call({p, h}, {100})[0];
    losses.push_back(n.call({h}, {4})[0]);
    for (Block b : {h, p, x}) n.log.let_go(b);
    p = next;
    EXPECT_LE(n.used, 2000 + 4 * step) << "step " << step;
  }
  EXPECT_LE(p, 5000) << "the past of the last block and of the losses is forgotten";
  for (Block b : losses) n.log.let_go(b);
  n.log.let_go(p);
}

TEST(EvictionLog, APinEndsWithItsBlock) {
  Numbers n;
  const Block x = n.outside(8, 1), h = n.call({x}, {1000})[0], y = n.call({h}, {8})[0];
  n.log.pin(h);
  n.log.let_go(h);
  EXPECT_EQ(n.used, 16);
  n.log.unpin(y);
  EXPECT_TRUE(n.log.evict(y)) << "it had no pin to lose";
  n.read(y);
}

TEST(EvictionLog, ClosesOnceAllThatIsHeldIsResident) {
  Numbers n;
  const Block x = n.outside(8, 7), a = n.call({x}, {8})[0], b = n.call({a}, {8})[0];
  n.log.let_go(a);
  n.log.evict(b);
  EXPECT_FALSE(n.log.close());
  n.read(b);
  EXPECT_EQ(n.used, 24);
  EXPECT_TRUE(n.log.close());
  EXPECT_EQ(n.used, 16) << "what nobody holds goes";
  EXPECT_TRUE(n.log.empty());
}

// A block that the program holds, and the number that it must have.
struct Held {
  Block block;
  std::uint64_t number;
};

void run_random_program(unsigned seed, std::int64_t limit) {
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Numbers n;
  n.limit = limit;
  std::vector<Held> held;
  int refused = 0;
  for (int step = 0; step < 400; ++step) {
    const std::size_t what = held.size() < 2 ? 0 : pick(16);
    try {
      if (what < 1) {
        const std::uint64_t number = random();
        held.push_back({n.outside(1 + static_cast<std::int64_t>(pick(20)), number), number});
      } else if (what < 8) {
        std::vector<Block> operands;
        std::uint64_t salt = random();
        std::vector<std::uint64_t> numbers;
        for (std::size_t i = 0; i < 1 + pick(3); ++i) {
          const Held& h = held[pick(held.size())];
          operands.push_back(h.block), numbers.push_back(h.number);
        }
        std::vector<std::int64_t> bytes(1 + pick(3));
        for (auto& b : bytes) b = static_cast<std::int64_t>(pick(30));
        const std::vector<Block> results = n.call(operands, bytes, 1 + static_cast<double>(pick(100)), salt);
        for (std::size_t k = 0; k < results.size(); ++k) {
          std::uint64_t hash = mixed(salt, k + 1);
          for (std::uint64_t x : numbers) hash = mixed(hash, x);
          held.push_back({results[k], hash});
        }
      } else if (what < 11) {
        const std::size_t i = pick(held.size());
        n.log.let_go(held[i].block);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (what < 13) {
        n.log.evict(held[pick(held.size())].block);
      } else if (what < 14) {
        Held& h = held[pick(held.size())];
        const std::uint64_t number = random();
        n.write(h.block, number);
        h.number = number;
      } else {
        const Held& h = held[pick(held.size())];
        ASSERT_EQ(n.read(h.block), h.number) << "step " << step;
      }
    } catch (const NoRoom&) {
      ++refused;
    }
    ASSERT_LE(n.used, limit);
  }
  n.limit = std::numeric_limits<std::int64_t>::max();
  for (const Held& h : held) ASSERT_EQ(n.read(h.block), h.number);
  for (const Held& h : held) n.log.let_go(h.block);
  EXPECT_TRUE(n.log.empty()) << "something is left of a program that holds nothing";
  EXPECT_EQ(n.used, 0);
}

TEST(EvictionLog, RandomProgramsReadWhatProgramsWithoutEvictionRead) {
  for (unsigned i = 0; i < 300; ++i) run_random_program(i, i % 3 == 0 ? std::numeric_limits<std::int64_t>::max() : 120 + i);
}

}  // namespace
}  // namespace tapedeck
