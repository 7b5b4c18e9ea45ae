#include <tapedeck/engine/eager/block_cache.h>

namespace tapedeck {
namespace {

constexpr std::size_t kSmall = 512, kLarge = 2 << 20;  // sizes are multiples of these

std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes < kLarge ? kSmall : kLarge;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* BlockCache::new_block(std::size_t bytes) {
  void* const block = allocate_(bytes);
  if (block) blocks_.emplace(block, bytes);
  return block;
}

std::size_t BlockCache::free_unused() {
  std::size_t bytes = 0;
  for (const auto& [size, block] : unused_) {
    bytes += size;
    free_(block);
    blocks_.erase(block);
  }
  unused_.clear();
  return bytes;
}

void* BlockCache::take(std::size_t bytes, const std::function<void()>& wait) {
  const std::size_t wanted = rounded(bytes);
  const std::lock_guard lock(mutex_);
  if (const auto found = unused_.lower_bound(wanted); found != unused_.end() && found->first <= wanted + wanted / 8) {
    void* const block = found->second;
    unused_.erase(found);
    return block;
  }
  if (void* const block = new_block(wanted)) return block;
  if (unused_.empty()) return nullptr;
  wait();
  free_unused();
  return new_block(wanted);
}

void BlockCache::give(void* block) noexcept {
  const std::lock_guard lock(mutex_);
  unused_.emplace(blocks_.at(block), block);
}

std::size_t BlockCache::trim() {
  const std::lock_guard lock(mutex_);
  return free_unused();
}

}  // namespace tapedeck
