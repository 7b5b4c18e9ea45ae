// The memory of one device, with counts of the bytes in use. Freed blocks are kept in lists by size and reused. They go back
// to the system when trim() is called or the allocator is destroyed, because the first touch of a page costs 20 to 80 times as
// much as a reused page.
//
// bytes_in_use counts the bytes that callers asked for, without rounding up. peak_bytes is the largest bytes_in_use so far.
// Thread safe: small blocks come from lists of the thread, other blocks from one list under a lock, and the counters are
// atomic.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace tapedeck TAPEDECK_API {

// Gives memory back when an allocator is at its limit.
class MemoryReclaimer {
 public:
  // Releases blocks of the allocator: as many bytes as asked for, if it can. Returns false if it released none. May be called
  // on any thread that allocates, which holds no lock of the allocator.
  virtual bool reclaim(std::int64_t bytes) noexcept = 0;
  // Says which blocks cannot be released, and why. The text is appended to the message of a MemoryLimitError, so it begins with
  // a semicolon: "; 4096 bytes are pinned ...".
  virtual std::string shortage() = 0;

 protected:
  ~MemoryReclaimer() = default;
};

// An allocation that the limit of the allocator does not allow, whatever is given back.
class MemoryLimitError : public ExecutionError {
 public:
  using ExecutionError::ExecutionError;
};

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

  // Returns a block aligned to 64 bytes, with undefined contents, or null for zero bytes. Throws ExecutionError if memory
  // runs out; the message names the size.
  void* allocate(std::int64_t bytes);
  // `bytes` must be the number of bytes that allocate() was called with.
  void release(void* block, std::int64_t bytes) noexcept;
  // Counts bytes outside of this allocator (such as a caller's tensor bound to a replay) as in use. forget() ends that.
  void adopt(std::int64_t bytes) noexcept;
  void forget(std::int64_t bytes) noexcept;

  MemoryStats stats() const noexcept;
  void reset_peak() noexcept;                    // sets the peak to the bytes in use
  void raise_peak(std::int64_t bytes) noexcept;  // sets the peak to `bytes` if it is lower
  // Gives the blocks that nobody uses back to the system, except those in the lists of other threads (at most 1 MiB for each
  // thread and size). Returns their bytes.
  std::int64_t trim() noexcept;

  // Bytes taken from the system: those of blocks in use, rounded up to their size, and of unused blocks that are kept.
  std::int64_t system_bytes() const noexcept;
  std::int64_t peak_system_bytes() const noexcept;  // the most since set_limit() or the start
  // From now on allocate() keeps system_bytes() at `bytes` or below. If a block would exceed that, allocate() gives unused
  // blocks back to the system, then asks the reclaimer, and at last throws MemoryLimitError. 0 ends the limit. REQUIRES: the
  // reclaimer lives until the limit ends.
  void set_limit(std::int64_t bytes, MemoryReclaimer* reclaimer) noexcept;
  std::int64_t limit() const noexcept;

  // The allocator of eager tensors. There is one in the process.
  static Allocator& host();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Owns one block of an allocator and releases the block when it is destroyed.
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
  void* detach() { return std::exchange(data_, nullptr); }  // the caller releases the block

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
