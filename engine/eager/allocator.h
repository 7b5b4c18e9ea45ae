// Memory of one device, counted. Blocks are cached by size and never handed back to the system while the allocator lives: a
// page touched for the first time costs 20 to 80 times a reused one.
//
// bytes_in_use counts what was asked for, not what was rounded up to; peak_bytes is its running maximum. Thread safe: small
// blocks come from per-thread free lists, the rest from a locked one; counters are atomic.
#pragma once

#include <tapedeck/kernels/export.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace tapedeck TAPEDECK_API {

struct MemoryStats {
  std::int64_t bytes_in_use = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t blocks_in_use = 0;
};

class Allocator {
 public:
  Allocator();
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // 64-byte aligned; null for zero bytes. Throws ExecutionError when memory runs out, naming the size. Contents are undefined.
  void* allocate(std::int64_t bytes);
  void release(void* block, std::int64_t bytes) noexcept;
  // Counts bytes that live elsewhere (a caller's tensor bound to a replay) as in use here, until forgotten.
  void adopt(std::int64_t bytes) noexcept;
  void forget(std::int64_t bytes) noexcept;

  MemoryStats stats() const noexcept;
  void reset_peak() noexcept;  // peak = in use

  // The process-wide one, behind eager tensors.
  static Allocator& host();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One block, freed with its owner.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Allocator& allocator, std::int64_t bytes) : allocator_(&allocator), data_(allocator.allocate(bytes)), bytes_(bytes) {}
  Buffer(Buffer&& o) noexcept { swap(o); }
  Buffer& operator=(Buffer&& o) noexcept {
    swap(o);
    return *this;
  }
  ~Buffer() {
    if (data_) allocator_->release(data_, bytes_);
  }
  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& o) noexcept {
    std::swap(allocator_, o.allocator_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
  }
  Allocator* allocator_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace TAPEDECK_API
