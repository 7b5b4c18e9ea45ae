// The memory that executors share: the blocks of the arena, state, the count of bytes and the right to run. An executor alone
// has a Memory to itself; a family (Executor::reshape) and a pool (replay_pool.h) have one in common.
//
// The rule:
//  - Members run one at a time.
//  - The arena has as many blocks as the member with the most chunks has chunks. Each block is as large as the largest chunk of
//  its
//    number. A plan without chunks has one, its arena. The blocks hold nothing between runs.
//  - A state value is one value for all members that share it: setting, binding or tearing it through one member holds for all.
//  - Inputs, outputs and constants belong to each member; in a family, members share the buffers that are large enough.
//  - A member may return state that it only reads. These results are copied out before another member writes that state, or
//    state bound to bytes in common with it.
//
// Thread safety: the list of members is behind a mutex, so executors may be made and destroyed while others run. Everything
// else belongs to the caller that holds Busy.
#pragma once

#include <tapedeck/capture/replay/memory/state_value.h>
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

using State = std::vector<std::shared_ptr<StateValue>>;  // by state slot of a member

class Memory;
struct Member;

// The executors that Executor::reshape() made of one: the same state in the same slots, and results in the same buffers. Only
// the caller that holds Busy reads or writes it.
struct Family {
  const Member* user = nullptr;  // ran last, or runs: the results of the others are overwritten. Only compared
  Name name;                     // of the user
  bool finished = true;          // the step of the user came to its end
};

// An executor as the other executors on the same memory see it.
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
  std::int64_t peak_bytes = 0;       // of its plan: the bytes that it would hold alone
  State state;
  std::vector<std::string> state_names;
  bool returns_state = false;  // some output lies in a state buffer
  Name dropped_by;             // the member that ended the step of this one by running; empty if none did
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;

  // The state value that goes by this name here; made if there is none. Throws TypeError if it has another type.
  std::shared_ptr<StateValue> state_named(Name name, const Type& type, Name graph);
  // A state value of its own.
  std::shared_ptr<StateValue> state_apart(Name name, const Type& type, Name graph);

  // From now on the blocks are made large enough for the member. Throws UsageError if two of its state values are bound to
  // bytes in common.
  void join(Member& member);
  void leave(Member& member);                          // the member lets go of its state, too
  std::int64_t block_bytes(std::int32_t block) const;  // that the members need by now; 0 if there is no such block

  // REQUIRES of all below, but for each_member: the caller holds Busy.

  // Throws UsageError if binding this value to the tensor would leave a member with two state values that are bound to bytes in
  // common. A value that is found by its name is bound for all members that have it.
  void check_apart(const Member& member, std::size_t slot, const Tensor& tensor) const;
  // From now on this state value, which other members may have too, is the tensor.
  void bind(Member& member, std::size_t slot, Tensor tensor);
  // From now on the family has the state value that is bound to the bytes of this tensor: a known one, or a new one.
  void point_at(Member& member, std::size_t slot, Tensor tensor);
  // The addresses of the blocks of the arena, after they were made as large as the members need by now. A block that changes
  // its size moves, and its bytes are lost. Throws ExecutionError, which names the block, if there is not enough memory.
  const std::vector<void*>& settle_arena();
  void before_write(StateValue& value) {
    value.written = ++writes_;
    if (returning_.load(std::memory_order_relaxed) > 0 || overlapping_.load(std::memory_order_relaxed)) tell_of_write(value);
  }
  void set(StateValue& value);            // its bytes are whole, and so are other values bound to them
  void tear(StateValue& value, Name by);  // and the values that share bytes with it
  // The member is about to overwrite the values of the others. The step of another member that is under way ends. Throws
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
      settings().poison;      // TAPEDECK_POISON when this was made; unless 0, each block of the arena has canaries around it
  Allocator count;            // counts the bytes of the replays on this memory, and no others
  std::uint64_t changes = 0;  // of state: set, bound, torn. While it is equal, every base is where it was
  std::atomic<Member*> step_of{nullptr};           // the member that is in the middle of a step in parts
  bool step_wrote = false;                         // that step has written state
  std::atomic<const Member*> arena_user{nullptr};  // ran last: the values of others in the arena are gone. Only compared
  Name arena_user_name;                            // its name. Plain: only the caller that holds Busy reads or writes it

 private:
  friend class Busy;

  struct Block {
    Allocator source;        // of this block alone, so that a block that is too small goes back to the system at once
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
  // The state values that are bound to tensors, by the address of their first byte. A tensor may be read as several types.
  std::multimap<const void*, std::weak_ptr<StateValue>> bound_;
  // Becomes true when two of the values in bound_ have bytes in common, and stays true from then on. While it is false, join()
  // and each_overlapping() need not search for values that share bytes. add_bound() keeps it up to date: it compares each new
  // value with its two neighbours.
  std::atomic<bool> overlapping_{false};
  std::vector<std::int64_t> wanted_;     // by block
  std::atomic<std::uint64_t> wants_{1};  // changes of it
  std::uint64_t writes_ = 0;             // of state values
  std::atomic<int> returning_{0};        // members that return state

  std::uint64_t settled_ = 0;  // the wants_ that the blocks were made for
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<void*> bases_;  // by block

  std::atomic<bool> busy_{false};
  std::atomic<Name> user_{Name()};  // holds Busy; for messages
};

// One caller at a time: a second one gets an error and does not wait.
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
