// The buffers of one executor, and where they are.
//
// Inputs, constants and results lie in buffers that the executor owns, or that it shares with its family (Executor::reshape).
// The arena and the state belong to the shared memory (shared_memory.h); their addresses are looked up before each step.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>
#include <tapedeck/capture/replay/program/buffer_table.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck::replay {

// The bytes of an executor that runs on a device. Its inputs, state and results have copies on the host, which are those of
// Buffers; the arena has none, and neither has state that is bound to a tensor of the device.
class DeviceCopies {
 public:
  virtual void fetch(BufferId b) = 0;  // brings the copy up to date. REQUIRES: not a chunk of the arena
  // A dense copy on the host. REQUIRES: a chunk of the arena, or state that is bound to a tensor of the device.
  virtual Tensor read(const BufferView& from, const Type& type) = 0;
  // Dense copies on the device. Ops that are called from now on come after the copies.
  struct Copied {
    BufferView from;
    Type type;
  };
  virtual std::vector<Tensor> copies_there(const std::vector<Copied>& values) = 0;

 protected:
  ~DeviceCopies() = default;
};

class Buffers {
 public:
  // REQUIRES: `plan` and `member` outlive this.
  Buffers(const Plan& plan, const Member& member);

  // Exactly one of the following two is called, once.
  // Allocates all buffers anew.
  void allocate();
  // Takes the buffers of an executor of the same graph at other types. A buffer that is too small is replaced by a fresh one if
  // `allow_up_sizing`, and is a TypeError otherwise.
  void share(const Buffers& parent, bool allow_up_sizing);
  // Throws the TypeError that share() throws, for the arena, which the shared memory enlarges by itself.
  void check_arena(bool allow_up_sizing) const;

  // From now on values are read as they are on the device.
  void read_from(DeviceCopies* device) { device_ = device; }

  // Copies the constants of the graph into their buffers.
  void fill_constants();

  const BufferTable& table() const { return table_; }
  // By buffer; null for the arena, for state, and for unused constants.
  const std::vector<std::shared_ptr<Buffer>>& own() const { return own_; }
  bool is_shared(BufferId b) const { return own_[b].use_count() > 1; }  // with the family

  void write(BufferId b, const Tensor& value);  // copies the tensor there. REQUIRES: an input

  // ---- before a step ----
  void follow_arena(const std::vector<void*>& blocks);  // by chunk
  void follow_state();
  void resolve(Program& program);  // writes the addresses into the calls, if one of them has changed since

  // A dense copy of a value from the bytes that are its own by the plan.
  Tensor read(ValueId v) const;
  // The same on the device. REQUIRES: read_from() was called.
  std::vector<Tensor> read_there(const std::vector<ValueId>& values) const;
  // Before the bytes are read by their address: if they are on a device, they come from there.
  void fetch(BufferId b) const {
    if (device_) device_->fetch(b);
  }
  void* address(BufferId b) const;  // now; of state that may be elsewhere than at the last step

 private:
  bool is_bound_there(BufferId b) const;  // state whose bytes are those of a tensor of the device
  std::string name_of(BufferId b) const;
  void check_growth(BufferId b, std::int64_t there, bool allow_up_sizing) const;
  void put(BufferId b, std::shared_ptr<Buffer> buffer);
  void set_base(BufferId b, void* base);

  const Plan& plan_;
  const Member& member_;
  const BufferTable table_;
  std::vector<std::shared_ptr<Buffer>> own_;
  std::vector<void*> bases_;  // by buffer; the addresses of the arena and of state are as of the last step
  bool moved_ = true;         // some base has changed since the last resolve()
  DeviceCopies* device_ = nullptr;
};

}  // namespace tapedeck::replay
