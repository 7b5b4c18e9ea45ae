// Blocks of device memory that are kept for the next tensors, because the driver takes microseconds for each block, and may
// wait for the device.
//
// A device has several streams of work. A block that is given back is handed out again at once, to the stream that took it
// before: the work of the next owner follows that of the last. Another stream gets it only when the memory of the device is
// full. Each block knows which work used it last; the caller lets a stream wait before it uses a block of other streams.
//
// Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace tapedeck {

// A piece of work on a device. The streams have numbers from 0, and the pieces on one stream numbers from 1.
struct StreamWork {
  std::size_t stream = 0;
  std::uint64_t number = 0;  // 0: none
};

class BlockCache {
 public:
  struct Block {
    std::size_t bytes = 0;
    std::size_t stream = 0;        // took it last
    StreamWork written;            // the last work that wrote it
    std::vector<StreamWork> read;  // and those that have read it since, one of each stream
  };

  // `allocate` gives null if there is not enough memory; `free` may be called only when no work uses the block.
  using Allocate = std::function<void*(std::size_t bytes)>;
  using Free = std::function<void(void* block)>;
  BlockCache(Allocate allocate, Free free) : allocate_(std::move(allocate)), free_(std::move(free)) {}

  // A block of at least `bytes`, or null. An unused block serves if it is at most an eighth larger than needed. In this order:
  // an unused one of the stream, a new one, and an unused one of another stream. If there is none, `wait` is called, which
  // waits for all work, and the unused blocks go back to the driver.
  void* take(std::size_t bytes, std::size_t stream, const std::function<void()>& wait);
  void give(void* block) noexcept;
  std::size_t trim();  // frees the unused blocks, and returns their bytes. REQUIRES: no work uses them

  Block* find(const void* address);  // the block that has this byte, in use or not; null if none has

 private:
  using Size = std::pair<std::size_t, std::size_t>;  // stream, bytes

  void* new_block(std::size_t bytes);
  void* unused(std::size_t bytes, std::size_t stream);
  void* unused_of_any(std::size_t bytes);

  const Allocate allocate_;
  const Free free_;
  std::multimap<Size, void*> unused_;
  std::map<const char*, Block> blocks_;  // all of them, by address
};

}  // namespace tapedeck
