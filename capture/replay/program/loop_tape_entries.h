// The entries of the tape of a loop: the carried values at the start of some passes, from which the gradient of the loop
// computes the passes again. Readers of an entry are counted; an entry without readers is free.
#pragma once

#include <tapedeck/engine/eager/allocator.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck::replay {

// The first `entries` entries lie one after the other from `base` on; the pool allocates the others. Taking and releasing an
// entry take constant time, because a stack holds the free ones.
class LoopTapePool {
 public:
  LoopTapePool(char* base, std::int64_t entries, std::int64_t entry_bytes)
      : base_(base), planned_(std::max<std::int64_t>(entries, 0)), entry_bytes_(entry_bytes) {}

  std::int64_t take() {
    if (free_.empty()) return take_new();
    const std::int64_t k = free_.back();
    free_.pop_back();
    refs_[static_cast<std::size_t>(k)] = 1;
    return k;
  }
  void retain(std::int64_t k) { ++refs_[static_cast<std::size_t>(k)]; }
  void release(std::int64_t k) noexcept {
    if (--refs_[static_cast<std::size_t>(k)] == 0) free_.push_back(k);  // never allocates: take_new() has reserved the room
  }
  char* at(std::int64_t k) const {
    return k < planned_ ? base_ + k * entry_bytes_ : static_cast<char*>(grown_[static_cast<std::size_t>(k - planned_)].data());
  }

 private:
  std::int64_t take_new() {
    const auto k = static_cast<std::int64_t>(refs_.size());
    if (k >= planned_)  // the number of passes was not known before the run
      grown_.emplace_back(Allocator::host(), std::max<std::int64_t>(entry_bytes_, 1));
    refs_.push_back(1);
    free_.reserve(refs_.capacity());
    return k;
  }

  char* base_;
  std::int64_t planned_, entry_bytes_;
  std::vector<std::int32_t> refs_;  // by entry: how many readers it has
  std::vector<std::int64_t> free_;
  std::vector<Buffer> grown_;
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
  std::int64_t index_ = 0;
};

}  // namespace tapedeck::replay
