// The log of a running program that evicts values to stay inside a memory limit, and computes them again when they are read:
// which call made which block of bytes from which others, what the calls cost, and which blocks are resident. It knows no
// tensors. Its owner (engine/eager/eviction.cpp) has the bytes and runs the calls.
//
//     x = outside block      h = call(x)      y = call(h)
//     evict(h)    h is freed, its call stays in the log
//     read(h)     the call runs again; if x were evicted too, its call would run first
//
// This is dynamic tensor rematerialization (Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021) on blocks of bytes,
// so that views take no part. As there, the blocks that go are those with the smallest score, and time is the sum of the costs
// of all calls so far. The score is another one:
//
//     cost of the call, and of evicted calls beside it
//     ------------------------------------------------      t: time since the block was last used, T: time so far
//              bytes^0.8 * (t + 0.3 T)
//
// The evicted calls beside it are those for its evicted operands, for their evicted operands and so on, and those that read
// it. An operand that the program holds counts half: the program will read it anyway, and then its call has run for both. An
// operand that the program has let go counts two and a half times, because only other values need it, and a reader 0.15
// times. The cost of a call with several results counts once for all of them.
//
// Two rules change the score. A block goes first if the program does not hold it and no evicted block that the program holds
// is computed from it: nobody needs it. And once the program has read a block soon after it was evicted, a block that was used
// as lately as that one costs its call one and a half times more, because it is likely to be computed again twice.
//
// The paper's score has bytes * t below the line, and above the line the costs of all evicted calls beside the block. When
// several blocks are chosen at once, the last one may free enough alone: then the others stay. tests/bench/README.md compares
// the costs on traces of the paper with those of published scores.
//
// Scores depend on the calls alone, so equal programs evict equally. To choose a block takes time linear in the blocks that can
// go. The part of a cost that comes from evicted calls is computed only when the block may have one of the smallest scores
// without it. An operation on a block takes time linear in the calls that it touches.
//
// Not thread safe. No function recurses over the log.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tapedeck {

class EvictionLog {
 public:
  using Block = std::int32_t;
  using Call = std::int32_t;
  static constexpr std::int32_t kNone = -1;

  // The owner has the bytes of the blocks, and can run the calls. The log calls these functions.
  class Owner {
   public:
    // Frees the bytes of a block. The block stays in the log.
    virtual void free(Block b) noexcept = 0;
    // The log forgets the block, and may use its number again. Either the block is not resident, or the log is closed.
    virtual void forget(Block b) noexcept = 0;
    virtual void forget_call(Call c) noexcept = 0;
    // Computes these results of the call again; its operands are resident and locked. May evict other blocks. If it throws, no
    // result is resident.
    virtual void run(Call c, std::span<const Block> results) = 0;

   protected:
    ~Owner() = default;
  };

  explicit EvictionLog(Owner& owner) : owner_(owner) {}
  EvictionLog(const EvictionLog&) = delete;

  // A resident block that no call of the log made. It is never evicted. It is held until let_go().
  Block add_block(std::int64_t bytes);
  // A call that has just run, and its results, which are resident and held. Writes the numbers of the results.
  Call add_call(std::span<const Block> operands, std::span<const std::int64_t> result_bytes, double cost,
                std::span<Block> results);

  // The program holds the block no more: its pins end. Its bytes are freed at once if they can be computed again or nothing
  // reads them. Calls are forgotten if they and the blocks that they alone read cost more memory than they can save.
  void let_go(Block b) noexcept;
  // A locked block is not evicted. Locks count.
  void lock(Block b) { ++blocks_[b].locks; }
  void unlock(Block b) noexcept { --blocks_[b].locks; }
  // A pinned block is never evicted, until it is unpinned as often. To unpin a block without pins does nothing.
  void pin(Block b) noexcept;
  void unpin(Block b) noexcept;
  // Makes the block resident by running calls again, and notes that it is used now. If the owner's run() throws, the blocks
  // that were computed before stay resident.
  void read(Block b);
  // Frees blocks with the smallest scores that have so many bytes together. Returns their bytes, fewer if no more can go.
  std::int64_t evict_bytes(std::int64_t wanted) noexcept;
  // Frees this block, if it can go now.
  bool evict(Block b) noexcept;
  // Called before the bytes of the block change. Makes the evicted and held blocks resident that are computed from its bytes.
  // Then it forgets the calls that read the block and the call that made it, so the block is never evicted afterwards.
  void before_write(Block b);

  // Forgets all calls and blocks, and frees the blocks that nobody holds; those that are held stay where they are. Does nothing
  // and returns false while a held block is evicted, or a block is locked.
  bool close() noexcept;

  bool is_resident(Block b) const { return blocks_[b].resident; }
  bool is_held(Block b) const { return blocks_[b].held; }
  bool can_be_evicted(Block b) const;
  std::int64_t bytes(Block b) const { return blocks_[b].bytes; }
  std::span<const Block> operands(Call c) const { return calls_[c].operands; }
  std::span<const Block> results(Call c) const { return calls_[c].results; }
  Call maker(Block b) const { return blocks_[b].maker; }

  struct Counts {
    std::int64_t calls = 0;       // logged
    std::int64_t evictions = 0;   // blocks freed while the program held them
    std::int64_t recomputed = 0;  // calls that ran again
    double cost = 0, recomputed_cost = 0;
    std::int64_t resident_bytes = 0;
  };
  const Counts& counts() const { return counts_; }
  bool empty() const { return live_blocks_ == 0; }

 private:
  struct Reader {
    Call call = kNone;
    std::int32_t operand = 0;  // its place in the list of operands of the call
    Block result = kNone;      // the only result of the call; kNone if it has several
  };
  struct alignas(64) BlockEntry {
    double cost = -1;  // above the line of the score; negative: not known
    double used = 0;   // the time of the last use
    double size = 0;   // bytes, to the power that the score has
    std::vector<Reader> readers;
    Call maker = kNone;
    std::int32_t awaited = 0;  // calls that wait for other operands and will read it then
    std::int32_t locks = 0;
    bool held = false, resident = false, alive = false;
    bool of_use = true;  // is_of_use(), when the cost is known; the score of a block reads the entry to here, one cache line
    std::uint64_t mark = 0;  // the last walk over the log that met it
    std::int64_t bytes = 0;
    std::int32_t pins = 0;
    std::int32_t candidate = kNone;  // its place in the list of candidates
  };
  struct alignas(64) CallEntry {
    std::vector<Block> operands;
    double cost = 0;
    std::uint64_t mark = 0;
    std::vector<Block> results;
    std::vector<std::int32_t> places;  // of this call in the reader lists of its operands
    std::int32_t live_results = 0;
    bool alive = false;
  };
  struct Frame;
  // A block that may go, with a copy of the numbers of its score. A look at all candidates reads these lists from the first to
  // the last, and few of the blocks themselves, which lie far apart in memory.
  struct Candidate {
    double cost = -1, used = 0, size = 0;
    double call_cost = 0;   // of the call that makes it
    double least_cost = 0;  // the cost, which is not always known, is at least this one
    Block block = kNone;
    bool of_use = true, held = true;
  };
  // Small blocks go only when no large one can: there are many of them, and they free little.
  enum Size { large, small };
  static constexpr std::int64_t kSmallBlock = 256;  // bytes
  // A block with one of the smallest scores, and its time, cost and waiting calls when the score was computed.
  struct Ready {
    double score;
    Block block;
    double used, cost;
    std::int32_t awaited;
  };

  Block new_block(std::int64_t bytes);
  Call new_call();
  bool needed(const BlockEntry& b) const { return b.held || !b.readers.empty(); }
  double cost_again(Block b);
  double cost_of_readers(Block b);
  double share_of_call(Block b, const CallEntry& call) const;
  double known_cost(Block b);
  bool is_of_use(Block b);
  double score(const Candidate& c) const;
  void forget_costs_around(Block b) noexcept;
  void forget_costs_of_results(Call c) noexcept;
  void note_early_read(const BlockEntry& b) noexcept;
  void note_resident(Block b, bool resident) noexcept;
  void set_resident(Block b, bool resident) noexcept;
  void free_bytes(Block b) noexcept;
  Block cheapest() noexcept;
  void fetch_ahead(std::size_t at) const noexcept;
  bool may_be_ready(const Candidate& c, std::size_t most) const;
  static bool goes_before(const Ready& a, const Ready& b);
  void make_ready(const Candidate& c, bool awaited, std::size_t most);
  void look_at(const std::vector<Candidate>& candidates, bool awaited) noexcept;
  void set_used_now(BlockEntry& entry) noexcept;
  void set_cost(BlockEntry& entry, double cost) noexcept;
  Candidate* in_list(const BlockEntry& entry) noexcept;
  void update_candidate(Block b) noexcept;
  void retire(Block b) noexcept;
  void drop_unneeded(Block first) noexcept;
  void drop_call(Call c, std::vector<Block>* unread) noexcept;
  void release_operands(Call c, std::vector<Block>* unread) noexcept;
  Frame wait_for_operands(Call c);
  void run_again(Call c);
  void settle(std::vector<Block> outside) noexcept;
  bool keeps_many_bytes() const { return kept_bytes_ > counts_.resident_bytes / 8; }
  void shorten() noexcept;
  void forget_maker(Block b) noexcept;
  struct Dependents;
  Dependents dependents(Block b);
  bool should_forget(const Dependents& of) noexcept;
  void make_independent(const Dependents& of) noexcept;

  Owner& owner_;
  std::vector<BlockEntry> blocks_;
  std::vector<CallEntry> calls_;
  std::vector<Candidate> candidates_[2];        // that may go: by Size
  std::vector<const Candidate*> without_cost_;  // scratch of look_at()
  std::vector<Block> free_blocks_, chosen_, walk_;
  std::vector<Ready> ready_;
  std::vector<Call> free_calls_;
  Counts counts_;
  double now_ = 0;
  double reuse_ = 0;  // the longest time after its last use after which an evicted block was soon read again
  std::uint64_t mark_ = 0;
  std::int64_t live_blocks_ = 0;
  // Since the last look at old blocks: blocks that the program let go, and bytes of those that stayed though no call makes
  // them.
  std::int64_t let_go_ = 0, kept_bytes_ = 0;
};

}  // namespace tapedeck
