#include <tapedeck/engine/eager/block_cache.h>

#include <iterator>

namespace tapedeck {
namespace {

constexpr std::size_t kSmallUnit = 512, kLargeUnit = 2 << 20;  // sizes are multiples of these

std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes < kLargeUnit ? kSmallUnit : kLargeUnit;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* BlockCache::new_block(std::size_t bytes) {
  void* const block = allocate_(bytes);
  if (block) blocks_.emplace(static_cast<const char*>(block), Block{bytes, 0, {}, {}});
  return block;
}

void* BlockCache::unused(std::size_t bytes, std::size_t stream) {
  const auto found = unused_.lower_bound({stream, bytes});
  if (found == unused_.end() || found->first.first != stream || found->first.second > bytes + bytes / 8) return nullptr;
  void* const block = found->second;
  unused_.erase(found);
  return block;
}

void* BlockCache::unused_of_any(std::size_t bytes) {
  for (auto at = unused_.begin(); at != unused_.end();) {
    const std::size_t stream = at->first.first;
    if (void* const block = unused(bytes, stream)) return block;
    at = unused_.lower_bound({stream + 1, 0});
  }
  return nullptr;
}

void* BlockCache::take(std::size_t bytes, std::size_t stream, const std::function<void()>& wait) {
  const std::size_t wanted = rounded(bytes);
  void* block = unused(wanted, stream);
  if (!block) block = new_block(wanted);
  if (!block) block = unused_of_any(wanted);
  if (!block && !unused_.empty()) {
    wait();
    trim();
    block = new_block(wanted);
  }
  if (block) find(block)->stream = stream;
  return block;
}

void BlockCache::give(void* block) noexcept {
  const Block& given = *find(block);
  unused_.emplace(Size(given.stream, given.bytes), block);
}

std::size_t BlockCache::trim() {
  std::size_t bytes = 0;
  for (const auto& [size, block] : unused_) {
    bytes += size.second;
    free_(block);
    blocks_.erase(static_cast<const char*>(block));
  }
  unused_.clear();
  return bytes;
}

BlockCache::Block* BlockCache::find(const void* address) {
  const auto* const byte = static_cast<const char*>(address);
  const auto behind = blocks_.upper_bound(byte);
  if (behind == blocks_.begin()) return nullptr;
  const auto at = std::prev(behind);
  return byte < at->first + at->second.bytes ? &at->second : nullptr;
}

}  // namespace tapedeck
