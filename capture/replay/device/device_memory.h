// The memory of one executor on a device: a block for each chunk of the arena, one for state, one for inputs, constants and
// outputs, and one for scratch. It is allocated once, and no address changes after that. State that is bound to tensors of the
// device lies in their memory, and its address changes with the binding.
#pragma once

#include <tapedeck/capture/replay/program/buffer_table.h>
#include <tapedeck/kernels/cuda/device_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::replay {

// The place of each buffer: its block, and its bytes there.
struct DeviceLayout {
  DeviceLayout(const BufferTable& buffers, std::int64_t scratch_bytes);

  static constexpr std::int64_t kAlignment = 512;  // of buffers in their block, and of the size of blocks

  struct Block {
    std::string name;
    std::int64_t bytes = 0;
  };
  struct Place {
    std::int32_t block = kNone;  // kNone: the buffer has no bytes
    std::int64_t offset = 0;
  };

  std::int64_t bytes() const;  // of all blocks

  std::vector<Block> blocks;
  std::int32_t state_block = kNone;
  std::vector<Place> places;  // by buffer; the last one is scratch

 private:
  void add_block(BufferId b, std::string name, std::int64_t bytes);
  void place_in_last(BufferId b, std::int64_t bytes);
};

class DeviceMemory {
 public:
  // Throws ExecutionError, which names the block, if there is not enough memory. With `state_later`, state gets memory in
  // place_state() only.
  DeviceMemory(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, const DeviceLayout& layout, bool state_later);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;

  const std::vector<void*>& bases() const { return bases_; }  // by buffer, scratch last; null for a buffer without bytes
  std::int64_t allocated_bytes() const { return allocated_bytes_; }

  // The addresses of state that lies elsewhere, by slot of state; null: it lies in memory of this object, which is allocated
  // now if there is none. Returns whether an address has changed. Throws as the constructor.
  bool place_state(const BufferTable& buffers, const std::vector<void*>& elsewhere);

 private:
  void* allocate(const DeviceLayout::Block& block);
  void allocate_state(const BufferTable& buffers, const std::vector<void*>& elsewhere);
  void release() noexcept;

  const std::shared_ptr<kernels::cuda::DeviceRuntime> runtime_;
  std::vector<void*> blocks_, bases_;
  std::vector<void*> own_state_;  // by slot of state: its place in memory of this object; null: it has none
  std::int64_t allocated_bytes_ = 0;
};

// Memory of the host that the device reads and writes.
class PinnedMemory {
 public:
  PinnedMemory(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, std::int64_t bytes);  // throws ExecutionError
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;

  char* data() const { return data_; }

 private:
  const std::shared_ptr<kernels::cuda::DeviceRuntime> runtime_;
  char* data_ = nullptr;  // null if it has no bytes
};

}  // namespace tapedeck::replay
