// TAPEDECK_POISON: a replay that watches its arena. It finds kernels that write outside their results, kernels that read bytes
// that they were not given, and plans that take bytes away too early.
//
// Dead bytes belong to no value: bytes before their value is made, after all nodes that use it have run, between buffers, and
// kCanary bytes on either side of each chunk of the arena. They hold 0xFF, which is a NaN in every floating dtype. Poison looks
// at them around every node:
//   before: the bytes of its operands still belong to the operands; the bytes that its results get are dead, and nobody has
//           touched them since they died
//   after:  dead bytes near its results (level 2: all dead bytes) are untouched, and so are live bytes beside its results; a
//           floating result does not hold the pattern, unless an operand held a NaN. The pattern in a result was read from dead
//           bytes, or the element was never written
// A violation is an ExecutionError that names the node and the value whose bytes were hit.
//
// On several threads a value is dead once all nodes that use it have run, on any thread. The kernels run side by side as ever;
// only the book-keeping is behind a mutex. AddressSanitizer and Valgrind put red zones around allocations. A planned arena is
// one allocation, or a few, so neither sees inside it.
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
  // Around the kernel of a node. Throws an ExecutionError for a violation. Thread safe: nodes of which neither follows the
  // other may run at once.
  void before(NodeId n, const KernelCall& call);
  void after(NodeId n, const KernelCall& call);
  // Looks at all dead bytes once more. Returns the violation, or "". REQUIRES: no node is running.
  std::string all_dead_untouched();

  // Have the bytes of the value (or of the value that it is a view of) been filled since it was made? REQUIRES: no node is
  // running.
  bool is_dead(ValueId v) const;

 private:
  // A holder of bytes of the arena: a value, with the operands that lie in place in it, or the workspace of a node.
  struct Holder {
    ValueId value = kNone;      // kNone: workspace
    NodeId maker = kNone;       // a node that writes it
    std::int32_t users = 0;     // nodes with calls that make or read it
    bool read = false;          // by any node. A value that no node reads stays until its bytes are needed
    std::int32_t left = 0;      // users that have not run in this step
    std::int32_t writers = 0;   // running now
    std::uint64_t version = 0;  // counts writers
    bool idle = false;          // all users have run, and none of them read it
  };
  struct Holding {  // a range of bytes, from its key in holdings_ on
    std::int64_t end = 0;
    std::int32_t holder = kNone;  // the value or workspace that holds it, or held it last; kNone: none so far
    bool dead = true;
  };
  // A place is an offset in a range that has all chunks, each with its canaries. A ByteRange never reaches from one chunk into
  // another.
  struct ByteRange {
    std::int64_t first = 0, end = 0;
  };
  struct Snapshot {  // of live bytes beside a node's results
    std::int64_t first = 0;
    std::int32_t holder = kNone;
    std::uint64_t version = 0;
    std::vector<unsigned char> bytes;
  };

  std::int32_t holder_of(ValueId v) const { return holder_of_[owner_[v]]; }
  ByteRange range_of(std::int64_t offset, std::int64_t bytes) const;
  ByteRange bytes_of(ValueId v) const;
  ByteRange workspace_of(NodeId n) const;
  std::int64_t place_of(std::int32_t chunk) const { return chunks_.start(chunk) + 2 * kCanary * chunk; }  // of its first byte
  std::int32_t chunk_at(std::int64_t place) const;
  unsigned char* at(std::int64_t place) const;
  std::string arena_text(std::int32_t chunk) const;
  std::string byte_text(std::int64_t place) const;
  std::string bytes_text(const ByteRange& s) const;
  std::string name(std::int32_t holder) const;
  std::string about(const Holding& holding) const;
  template <class F>
  void each_holding(const ByteRange& s, F&& f) const;
  void split(std::int64_t at);
  void give(const ByteRange& s, std::int32_t holder, bool dead);
  void fill(const ByteRange& s) const;
  std::int64_t first_touched(const ByteRange& s) const;
  void check_operands(NodeId n) const;
  void claim(NodeId n, ValueId v, const ByteRange& s, std::int32_t holder);
  void check_dead(NodeId n, const ByteRange& s, bool just_now) const;
  void take_snapshots(NodeId n);
  void check_snapshots(NodeId n) const;
  void check_results(NodeId n, const KernelCall& call) const;
  void release(std::int32_t holder);
  [[noreturn]] void complain(const std::string& what) const;

  const Plan& plan_;
  const Graph& g_;
  const ArenaChunks chunks_;
  const int level_;
  std::vector<ValueId> owner_;                    // by value: the value whose bytes it lies in
  std::vector<std::int32_t> holder_of_;           // by owner
  std::vector<std::int32_t> workspace_;           // by node: its holder
  std::vector<std::vector<std::int32_t>> uses_;   // by node: holders that it makes or reads
  std::vector<std::vector<ByteRange>> writes_;    // by node: results and workspace in the arena
  std::vector<std::vector<Snapshot>> snapshots_;  // by node, while it runs
  std::vector<char> joined_;                      // by value: operands of its node lie in place in it
  std::vector<char> overwrites_, carries_;  // by node: results may lie in operands' bytes; then: operands held a NaN before
  std::vector<Holder> holders_;
  std::map<std::int64_t, Holding> holdings_;  // from -kCanary to the end of the last canary, without gaps
  std::vector<unsigned char*> blocks_;        // by chunk, as of this step
  std::int64_t end_ = 0;                      // of the last canary
  mutable std::mutex mutex_;                  // guards holders_, holdings_ and snapshots_
};

}  // namespace tapedeck::replay
