// Blocks of device memory that are kept for the next tensors, because the driver takes microseconds for each block, and may
// wait for the device. A block that is given back is handed out again at once: all work runs in the order of one stream, so the
// work of the next owner follows that of the last.
//
// Thread safe.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace tapedeck {

class BlockCache {
 public:
  // `allocate` gives null if there is not enough memory; `free` may be called only when no work uses the block.
  using Allocate = std::function<void*(std::size_t bytes)>;
  using Free = std::function<void(void* block)>;
  BlockCache(Allocate allocate, Free free) : allocate_(std::move(allocate)), free_(std::move(free)) {}

  // A block of at least `bytes`, or null. An unused block serves if it is at most an eighth larger than needed. If the memory
  // of the device is full, `wait` is called, which waits for all work, and the unused blocks go back to the driver first.
  void* take(std::size_t bytes, const std::function<void()>& wait);
  void give(void* block) noexcept;
  std::size_t trim();  // frees the unused blocks, and returns their bytes. REQUIRES: no work uses them

 private:
  void* new_block(std::size_t bytes);
  std::size_t free_unused();

  const Allocate allocate_;
  const Free free_;
  std::mutex mutex_;
  std::multimap<std::size_t, void*> unused_;       // by size
  std::unordered_map<void*, std::size_t> blocks_;  // all of them, with their sizes
};

}  // namespace tapedeck
