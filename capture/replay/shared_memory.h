// What executors share: the arena's blocks, state, the count of bytes and the right to run. A lone executor has a Memory to
// itself; a family (Executor::reshape) and a pool (replay_pool.h) have one in common.
//
// The rule. Members run one at a time. There are as many blocks as the member with the most chunks has, each as large as the
// largest chunk of that number (a plan without chunks has one, its arena), and they hold nothing between runs. A state value is
// one and the same for all members that share it, from whoever sets, binds or tears it. Inputs, outputs and constants are each
// member's own; of a family, as large as they are equal. Outputs that a member returned from state it only reads are copied out
// before another member writes that state, or state bound to bytes in common with it.
//
// Thread safety: the list of members is behind a mutex, so executors may be made and destroyed while others run. All else
// belongs to whoever holds Busy.
#pragma once

#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/attrs.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tapedeck::replay {

// A state value and its bytes: ours, or those of the caller's tensor. No bytes before it is first set.
struct StateValue {
  StateValue(Allocator& count, Name name, const Type& type, Name graph) : name(name), type(type), graph(graph), count_(count) {}
  ~StateValue() { release(); }
  StateValue(const StateValue&) = delete;

  void own();                // has bytes of its own from here on, unless it is bound
  void bind(Tensor tensor);  // which is not written by that: its version stays
  bool is_bound_to(const Tensor& tensor) const;
  bool overlaps(const void* at, std::int64_t bytes) const;  // is bound to some of these bytes
  bool overlaps(const StateValue& other) const { return other.bound.defined() && overlaps(other.base, other.type.bytes()); }
  std::uint32_t version() const;  // of what it is bound to: counts writes. REQUIRES: bound
  void note_write();              // likewise: its bytes have been written
  void tear(Name by) { set = false, torn = true, torn_by = by; }

  const Name name;
  const Type type;
  const Name graph;      // of the member that had it first
  bool named = false;    // found by its name, never by its tensor
  Tensor bound;          // undefined: the bytes are ours
  void* base = nullptr;  // where the bytes are now
  bool set = false;
  std::uint64_t written = 0;  // a number that no other write has (Memory::before_write)
  bool torn = false;          // a run that updates it failed after it had begun to write state
  Name torn_by;

 private:
  void release();

  Allocator& count_;
  Buffer bytes_;
};

using State = std::vector<std::shared_ptr<StateValue>>;  // by state slot of a member

class Memory;
struct Member;

// What Executor::reshape() made of one executor: the same state in the same slots, and results in the same buffers. Only
// whoever holds Busy looks or writes.
struct Family {
  const Member* user = nullptr;  // who ran last, or runs: what others returned is overwritten; only compared
  Name name;                     // of that one
  bool finished = true;          // that step came to its end
};

// An executor as the others see it.
struct Member {
  explicit Member(std::shared_ptr<Memory> m, std::shared_ptr<Family> f = std::make_shared<Family>())
      : memory(std::move(m)), family(std::move(f)) {}
  virtual ~Member() = default;
  virtual void keep_outputs_in(const StateValue& value) = 0;                    // it is about to be written
  virtual const std::vector<std::shared_ptr<Buffer>>& own_buffers() const = 0;  // inputs, constants, outputs; others are null

  const std::shared_ptr<Memory> memory;  // outlives all below
  const std::shared_ptr<Family> family;
  Name name;
  std::vector<std::int64_t> chunks;  // of its plan's arena; one of all bytes if it is one block
  std::int64_t peak_bytes = 0;       // of its plan: what it would hold alone
  State state;
  std::vector<std::string> state_names;
  bool returns_state = false;  // some output lies in a state buffer
  Name dropped_by;  // who ended this member's step by running; empty: nobody. Only whoever holds Busy looks or writes
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;

  // The state value that goes by this name here; made if there is none. Throws TypeError if it has another type.
  std::shared_ptr<StateValue> state_named(Name name, const Type& type, Name graph);
  // A state value of its own.
  std::shared_ptr<StateValue> state_apart(Name name, const Type& type, Name graph);

  // From here on the blocks are to be large enough for it. Throws UsageError if two of its state values are bound to bytes in
  // common.
  void join(Member& member);
  void leave(Member& member);                          // lets go of its state too
  std::int64_t block_bytes(std::int32_t block) const;  // that the members need by now; 0 where there is no such block

  // REQUIRES of all below, but for each_member: the caller holds Busy.

  // Throws UsageError if a member would have two state values bound to bytes in common, were this one bound to the tensor: a
  // value that goes by its name is bound for all who have it.
  void check_apart(const Member& member, std::size_t slot, const Tensor& tensor) const;
  // The member's state value, and that of all who have it, is the tensor from here on.
  void bind(Member& member, std::size_t slot, Tensor tensor);
  // From here on the family's state value is the one that is bound to this tensor's bytes, whoever bound it.
  void point_at(Member& member, std::size_t slot, Tensor tensor);
  // Where the blocks of the arena are, made as large as the members need by now. Those that change their size move, and what is
  // in them is lost. Throws ExecutionError for want of memory, which names the block.
  const std::vector<void*>& settle_arena();
  void before_write(StateValue& value) {
    value.written = ++writes_;
    if (returning_.load(std::memory_order_relaxed) > 0 || overlapping_.load(std::memory_order_relaxed)) tell_of_write(value);
  }
  void set(StateValue& value);            // its bytes are whole, and so is what else is bound to them
  void tear(StateValue& value, Name by);  // and what shares bytes with it
  // The member is about to overwrite what the others have computed. The step of another member that is under way ends. Throws
  // ExecutionError instead if that step has written state.
  void claim(const Member& by) {
    if (const Member* other = step_of.load(); other && other != &by) end_step_for(by);
  }

  // Calls f(member) for each, in the order in which they joined. No member comes or goes meanwhile.
  template <class F>
  void each_member(F&& f) const {
    const std::lock_guard lock(mutex_);
    for (const Member* m : members_) f(*m);
  }

  const int poison =
      settings().poison;      // TAPEDECK_POISON when this was made: then there are canaries around each block of the arena
  Allocator count;            // counts the replays' bytes and nobody else's
  std::uint64_t changes = 0;  // of state: set, bound, torn. Equal: every base is where it was
  std::atomic<Member*> step_of{nullptr};           // who is in the middle of a step
  bool step_wrote = false;                         // that step has written state
  std::atomic<const Member*> arena_user{nullptr};  // who ran last: what others left in the arena is gone; only compared
  Name arena_user_name;                            // likewise, but plain: only whoever holds Busy reads or writes it

 private:
  friend class Busy;

  struct Block {
    Allocator source;        // of this block alone: when it is outgrown it goes back to the system at once
    Buffer buffer;           // with the canaries
    std::int64_t bytes = 0;  // without
    void* base = nullptr;
  };

  std::unique_ptr<Block> make_block(std::size_t i, const std::vector<std::int64_t>& wanted);
  void check_apart(const Member& member) const;
  void end_step_for(const Member& by);
  void tell_of_write(const StateValue& value);
  void add_bound(const std::shared_ptr<StateValue>& value);
  void remove_bound(const StateValue& value);
  template <class F>
  void each_overlapping(const StateValue& value, F&& f);
  void want();

  mutable std::mutex mutex_;
  std::vector<Member*> members_;
  std::map<std::string, std::weak_ptr<StateValue>> named_;
  std::multimap<const void*, std::weak_ptr<StateValue>>
      bound_;                             // by where their bytes begin; a tensor may be read as several types
  std::atomic<bool> overlapping_{false};  // some two of them had bytes in common; until then nobody need look
  std::vector<std::int64_t> wanted_;      // by block
  std::atomic<std::uint64_t> wants_{1};   // changes of it
  std::uint64_t writes_ = 0;              // of state values
  std::atomic<int> returning_{0};         // members that return state

  std::uint64_t settled_ = 0;  // the wants_ that the blocks were made for
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<void*> bases_;  // by block

  std::atomic<bool> busy_{false};
  std::atomic<Name> user_{Name()};  // who holds Busy, for messages
};

// One caller at a time: a second one is told, not made to wait.
class Busy {
 public:
  Busy(Memory& memory, const char* what, Name member) : memory_(memory) {
    if (memory_.busy_.exchange(true, std::memory_order_acquire)) refuse(what, member);
    memory_.user_.store(member, std::memory_order_relaxed);
  }
  // Waits for its turn: for destructors, which cannot be refused.
  explicit Busy(Memory& memory) : memory_(memory) {
    while (memory_.busy_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    memory_.user_.store(Name(), std::memory_order_relaxed);
  }
  ~Busy() { memory_.busy_.store(false, std::memory_order_release); }
  Busy(const Busy&) = delete;

 private:
  [[noreturn]] void refuse(const char* what, Name member) const;

  Memory& memory_;
};

}  // namespace tapedeck::replay
