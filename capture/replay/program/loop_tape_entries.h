// The entries of the tape of a loop: the carried values at the start of some passes, from which the gradient of the loop
// computes the passes again. Readers of an entry are counted; an entry without readers is free.
#pragma once

#include <tapedeck/engine/eager/allocator.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tapedeck::replay {

class LoopTapePool {
 public:
  LoopTapePool(char* base, std::int64_t entries, std::int64_t entry_bytes)
      : base_(base), entry_bytes_(entry_bytes), refs_(static_cast<std::size_t>(std::max<std::int64_t>(entries, 0))) {}

  std::int32_t take() {
    const auto free = std::find(refs_.begin(), refs_.end(), 0);
    const auto k = static_cast<std::int32_t>(free - refs_.begin());
    if (free == refs_.end()) {  // the number of passes was not known before the run
      refs_.push_back(0);
      grown_.emplace_back(Allocator::host(), std::max<std::int64_t>(entry_bytes_, 1));
      first_grown_ = std::min(first_grown_, k);
    }
    refs_[k] = 1;
    return k;
  }
  void retain(std::int32_t k) { ++refs_[k]; }
  void release(std::int32_t k) { --refs_[k]; }
  char* at(std::int32_t k) const {
    return k < first_grown_ ? base_ + k * entry_bytes_ : static_cast<char*>(grown_[k - first_grown_].data());
  }

 private:
  char* base_;
  std::int64_t entry_bytes_;
  std::vector<std::int32_t> refs_;
  std::vector<Buffer> grown_;
  std::int32_t first_grown_ = std::numeric_limits<std::int32_t>::max();
};

// Holds one entry of the pool. Copies hold the same entry.
class LoopTapeEntry {
 public:
  LoopTapeEntry() = default;
  explicit LoopTapeEntry(LoopTapePool& pool) : pool_(&pool), index_(pool.take()) {}
  LoopTapeEntry(const LoopTapeEntry& o) : pool_(o.pool_), index_(o.index_) {
    if (pool_) pool_->retain(index_);
  }
  LoopTapeEntry(LoopTapeEntry&& o) noexcept : pool_(std::exchange(o.pool_, nullptr)), index_(o.index_) {}
  LoopTapeEntry& operator=(LoopTapeEntry o) noexcept {
    std::swap(pool_, o.pool_);
    std::swap(index_, o.index_);
    return *this;
  }
  ~LoopTapeEntry() {
    if (pool_) pool_->release(index_);
  }
  char* data() const { return pool_->at(index_); }

 private:
  LoopTapePool* pool_ = nullptr;
  std::int32_t index_ = 0;
};

}  // namespace tapedeck::replay
