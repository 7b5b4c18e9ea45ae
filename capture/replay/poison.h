// TAPEDECK_POISON: a replay that watches its arena. For finding kernels that write outside their results or read what they were
// not given, and plans (or whatever else) that take bytes away too early.
//
// Bytes that belong to nobody - before their value is made, after all who use it have run, between buffers, and kCanary bytes
// on either side of each chunk of the arena - hold 0xFF, which is a NaN in every floating dtype. Around every node:
//   before  its operands' bytes must still be theirs; the bytes that its results get must be dead, and untouched since they
//   died after   dead bytes near its results (level 2: all dead bytes) must be untouched, and so must live bytes beside them; a
//   floating result
//           may not hold the pattern unless an operand held a NaN: it would have been read from dead bytes, or never written
// What fails is an ExecutionError that names the node and the value whose bytes were hit.
//
// On several threads a value is dead once all nodes that use it have run, whoever they ran on; the kernels themselves run side
// by side as ever, only the book-keeping is behind a mutex. AddressSanitizer's and Valgrind's red zones do this for
// allocations; a planned arena is one allocation, or a few, so neither sees inside it.
#pragma once

#include <tapedeck/capture/plan/arena_chunks.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tapedeck::replay {

class Poison {
 public:
  static constexpr std::int64_t kCanary = 4096;  // bytes on either side of a chunk

  // `called`: by node, whether it has a kernel call. REQUIRES: `plan` outlives this.
  Poison(const Plan& plan, const std::vector<bool>& called, int level);

  // A new step: everything is dead. `blocks`: by chunk of the plan, and maybe more of them; each points behind its first
  // canary.
  void begin(const std::vector<void*>& blocks);
  // Around the kernel of a node; nodes that neither follows the other may be in between at once. What is wrong is thrown as an
  // ExecutionError. Thread safe.
  void before(NodeId n, const KernelCall& call);
  void after(NodeId n, const KernelCall& call);
  // All dead bytes, once more; what is wrong, or "". REQUIRES: no node is running.
  std::string all_dead_untouched();

  // Have the bytes of the value (or those it is a window on) been filled since it was made? REQUIRES: no node is running.
  bool is_dead(ValueId v) const;

 private:
  // Who holds a stretch of the arena: a value, its parts included, or a node's workspace.
  struct Holder {
    ValueId value = kNone;      // kNone: workspace
    NodeId maker = kNone;       // a node that writes it
    std::int32_t users = 0;     // nodes with calls that make or read it
    bool read = false;          // by any: what nobody reads stays until its bytes are needed
    std::int32_t left = 0;      // users that have not run in this step
    std::int32_t writers = 0;   // running now
    std::uint64_t version = 0;  // counts writers
    bool idle = false;          // all users have run, nobody read it
  };
  struct Piece {  // from its key on
    std::int64_t end = 0;
    std::int32_t holder = kNone;  // who holds it, or held it last; kNone: nobody yet
    bool dead = true;
  };
  // Places are offsets in the arena's range, where each chunk has its canaries with it: a stretch never reaches from one into
  // another.
  struct Stretch {
    std::int64_t first = 0, end = 0;
  };
  struct Snapshot {  // of live bytes beside a node's results
    std::int64_t first = 0;
    std::int32_t holder = kNone;
    std::uint64_t version = 0;
    std::vector<unsigned char> bytes;
  };

  std::int32_t holder_of(ValueId v) const { return holder_of_[owner_[v]]; }
  Stretch stretch(std::int64_t offset, std::int64_t bytes) const;
  Stretch bytes_of(ValueId v) const;
  Stretch workspace_of(NodeId n) const;
  std::int64_t place_of(std::int32_t chunk) const { return chunks_.start(chunk) + 2 * kCanary * chunk; }  // of its first byte
  std::int32_t chunk_at(std::int64_t place) const;
  unsigned char* at(std::int64_t place) const;
  std::string arena_text(std::int32_t chunk) const;
  std::string byte_text(std::int64_t place) const;
  std::string bytes_text(const Stretch& s) const;
  std::string name(std::int32_t holder) const;
  std::string about(const Piece& piece) const;
  template <class F>
  void each_piece(const Stretch& s, F&& f) const;
  void split(std::int64_t at);
  void give(const Stretch& s, std::int32_t holder, bool dead);
  void fill(const Stretch& s) const;
  std::int64_t first_touched(const Stretch& s) const;
  void check_operands(NodeId n) const;
  void claim(NodeId n, ValueId v, const Stretch& s, std::int32_t holder);
  void check_dead(NodeId n, const Stretch& s, bool just_now) const;
  void take_snapshots(NodeId n);
  void check_snapshots(NodeId n) const;
  void check_results(NodeId n, const KernelCall& call) const;
  void release(std::int32_t holder);
  [[noreturn]] void complain(const std::string& what) const;

  const Plan& plan_;
  const Graph& g_;
  const ArenaChunks chunks_;
  const int level_;
  std::vector<ValueId> owner_;                    // by value: whose bytes it looks at, or is a part of
  std::vector<std::int32_t> holder_of_;           // by owner
  std::vector<std::int32_t> workspace_;           // by node: its holder
  std::vector<std::vector<std::int32_t>> uses_;   // by node: holders that it makes or reads
  std::vector<std::vector<Stretch>> writes_;      // by node: results and workspace in the arena
  std::vector<std::vector<Snapshot>> snapshots_;  // by node, while it runs
  std::vector<char> joined_;                      // by value: others are parts of it
  std::vector<char> overwrites_, carries_;  // by node: results may lie in operands' bytes; then: operands held a NaN before
  std::vector<Holder> holders_;
  std::map<std::int64_t, Piece> pieces_;  // from -kCanary to the end of the last canary, without gaps
  std::vector<unsigned char*> blocks_;    // by chunk, as of this step
  std::int64_t end_ = 0;                  // of the last canary
  mutable std::mutex mutex_;              // guards holders_, pieces_ and snapshots_
};

}  // namespace tapedeck::replay
