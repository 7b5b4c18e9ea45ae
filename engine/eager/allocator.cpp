// Allocates memory in size classes and reuses freed blocks.
//
// The classes are the multiples of 64 bytes up to 4 KiB, and above that eight sizes between each power of two and the next. A
// freed block goes to the list of its class. Small blocks of the host allocator go to a list of the thread that frees them, as
// long as memory has no limit.
// Blocks of 2 MiB and more ask the system for the huge pages that they fill.
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tapedeck {
namespace {

constexpr std::int64_t kStep = 64;
constexpr std::int64_t kSmall = 4096;
constexpr int kSmallClasses = kSmall / kStep + 1;
// The most blocks of a class in the list of a thread: 256 KiB of them, or 256 if they are larger than that allows. The values
// that backward keeps of a thousand small ops fit, so that they cost no call of the C library.
constexpr int most_cached(std::int64_t size) { return static_cast<int>(std::max<std::int64_t>(256, (256 << 10) / size)); }

std::int64_t rounded(std::int64_t bytes) {
  if (bytes <= kSmall) return (bytes + kStep - 1) / kStep * kStep;
  const std::int64_t step =
      std::max<std::int64_t>(std::int64_t{1} << (std::bit_width(static_cast<std::uint64_t>(bytes - 1)) - 4), kStep);
  return (bytes + step - 1) / step * step;
}

constexpr std::int64_t kHugePage = 2 << 20;

// The bytes that a block of this class takes from the system.
std::int64_t system_size(std::int64_t size) { return size < kHugePage ? size : (size + kHugePage - 1) / kHugePage * kHugePage; }

// Counts the bytes that an allocator has taken from the system. The host allocator has a counter outside of it, because threads
// keep its small blocks in lists of their own and free them when they end.
struct SystemBytes {
  std::atomic<std::int64_t> now{0}, peak{0}, limit{0};

  bool take(std::int64_t bytes) noexcept {
    std::int64_t before = now.load(std::memory_order_relaxed), most = limit.load(std::memory_order_relaxed);
    do
      if (most > 0 && bytes > most - before) return false;
    while (!now.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    std::int64_t seen = peak.load(std::memory_order_relaxed);
    while (before + bytes > seen && !peak.compare_exchange_weak(seen, before + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }
  void give(std::int64_t bytes) noexcept { now.fetch_sub(bytes, std::memory_order_relaxed); }
};
constinit SystemBytes host_bytes;

// A block of `size` bytes, of which `used` are asked for. Huge pages stand only where all their bytes are used: a huge page
// that is touched at its first byte takes two megabytes, and a program has hundreds of large tensors.
void* system_allocate(std::int64_t size, std::int64_t used) {
  const std::size_t huge = static_cast<std::size_t>(used / kHugePage * kHugePage);
  void* block = std::aligned_alloc(huge > 0 ? kHugePage : 64, static_cast<std::size_t>(system_size(size)));
  if (!block) throw ExecutionError(fmt::format("out of memory: no block of {} bytes", used));
  if (huge > 0) madvise(block, huge, MADV_HUGEPAGE);
  return block;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCacheBlocks = false;  // off, so that the sanitizers see when each block lives
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kCacheBlocks = false;
#else
constexpr bool kCacheBlocks = true;
#endif
#else
constexpr bool kCacheBlocks = true;
#endif

struct FreeBlock {
  FreeBlock* next;
};

// The free small blocks of the host allocator that belong to one thread. They go back to the C library when the thread ends.
// The cache has no destructor, so that using it needs no check for initialisation.
struct ThreadCache {
  FreeBlock* lists[kSmallClasses];
  int counts[kSmallClasses];
  bool open;
};
constinit thread_local ThreadCache thread_cache = {};
// Empties the lists of this thread; returns the bytes that they held.
std::int64_t free_thread_cache() {
  std::int64_t bytes = 0;
  for (int c = 0; c < kSmallClasses; ++c) {
    for (FreeBlock*& list = thread_cache.lists[c]; list; bytes += c * kStep) std::free(std::exchange(list, list->next));
    thread_cache.counts[c] = 0;
  }
  host_bytes.give(bytes);
  return bytes;
}

struct ThreadCacheOwner {
  ThreadCacheOwner() { thread_cache.open = true; }
  ~ThreadCacheOwner() {
    thread_cache.open = false;
    free_thread_cache();
  }
};
void open_thread_cache() {
  static thread_local ThreadCacheOwner owner;
  (void)owner;
}

}  // namespace

struct Allocator::Impl {
  std::atomic<std::int64_t> in_use{0}, peak{0}, blocks{0};
  SystemBytes own;
  SystemBytes* system = &own;
  std::atomic<MemoryReclaimer*> reclaimer{nullptr};
  std::mutex mutex;
  std::unordered_map<std::int64_t, std::vector<void*>> free;
  bool per_thread = false;

  void raise(std::int64_t to) noexcept {
    std::int64_t seen = peak.load(std::memory_order_relaxed);
    while (to > seen && !peak.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
    }
  }

  void count(std::int64_t bytes) { raise(in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes); }

  // A block that was freed and kept, or null.
  void* take_kept(std::int64_t size) {
    if (!kCacheBlocks) return nullptr;
    if (per_thread && size <= kSmall) {
      FreeBlock*& list = thread_cache.lists[size / kStep];
      if (list) {
        --thread_cache.counts[size / kStep];
        return std::exchange(list, list->next);
      }
      if (!thread_cache.open) open_thread_cache();
    }
    std::lock_guard lock(mutex);
    auto it = free.find(size);
    if (it == free.end() || it->second.empty()) return nullptr;
    void* block = it->second.back();
    it->second.pop_back();
    return block;
  }

  void* take(std::int64_t size, std::int64_t used) {
    if (void* kept = take_kept(size)) return kept;
    if (!system->take(system_size(size)))
      if (void* kept = make_room(size, used)) return kept;
    try {
      return system_allocate(size, used);
    } catch (...) {
      system->give(system_size(size));
      throw;
    }
  }

  // Gives memory back until the limit allows a new block of this size. Then it counts the new block and returns null. If the
  // reclaimer frees a block of this size before, it returns that block.
  void* make_room(std::int64_t size, std::int64_t used) {
    const std::int64_t bytes = system_size(size);
    while (!system->take(bytes)) {
      const std::int64_t missing = bytes - (system->limit.load() - system->now.load());
      if (missing <= 0 || give_back(missing) > 0) continue;
      MemoryReclaimer* const from = reclaimer.load();
      if (!from || !from->reclaim(missing))
        throw MemoryLimitError(fmt::format("the memory budget of {} bytes allows no block of {} bytes more{}",
                                           system->limit.load(), used, from ? from->shortage() : ""));
      if (void* kept = take_kept(size)) return kept;
    }
    return nullptr;
  }

  // Gives kept blocks back to the system: the smallest that is large enough, or else the largest, and so on. Those of this
  // thread's lists go when no other is left. Returns their bytes.
  std::int64_t give_back(std::int64_t bytes) noexcept {
    std::int64_t given = 0;
    const std::lock_guard lock(mutex);
    while (given < bytes) {
      auto best = free.end();
      for (auto it = free.begin(); it != free.end(); ++it) {
        if (it->second.empty()) continue;
        const bool enough = it->first >= bytes - given, best_is = best != free.end() && best->first >= bytes - given;
        if (best == free.end() || (enough ? !best_is || it->first < best->first : !best_is && it->first > best->first))
          best = it;
      }
      if (best == free.end()) return given + (per_thread ? free_thread_cache() : 0);
      std::free(best->second.back());
      best->second.pop_back();
      system->give(system_size(best->first));
      given += system_size(best->first);
    }
    return given;
  }

  void free_block(void* block, std::int64_t size) noexcept {
    std::free(block);
    system->give(system_size(size));
  }

  void give(void* block, std::int64_t size) noexcept {
    if (!kCacheBlocks) return free_block(block, size);
    const bool limited = system->limit.load(std::memory_order_relaxed) > 0;  // then no thread keeps what another may need
    if (per_thread && size <= kSmall && !limited) {
      const int c = static_cast<int>(size / kStep);
      if (!thread_cache.open || thread_cache.counts[c] >= most_cached(size)) return free_block(block, size);
      auto* f = static_cast<FreeBlock*>(block);
      f->next = std::exchange(thread_cache.lists[c], f);
      ++thread_cache.counts[c];
      return;
    }
    try {
      std::lock_guard lock(mutex);
      free[size].push_back(block);
    } catch (...) {
      free_block(block, size);  // there is no memory for the list itself
    }
  }
};

Allocator::Allocator() : impl_(std::make_unique<Impl>()) {}

Allocator::~Allocator() {
  for (auto& [size, blocks] : impl_->free)
    for (void* block : blocks) std::free(block);
}

void* Allocator::allocate(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* block = impl_->take(rounded(bytes), bytes);
  impl_->count(bytes);
  impl_->blocks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void Allocator::release(void* block, std::int64_t bytes) noexcept {
  if (!block) return;
  impl_->in_use.fetch_sub(bytes, std::memory_order_relaxed);
  impl_->blocks.fetch_sub(1, std::memory_order_relaxed);
  impl_->give(block, rounded(bytes));
}

void Allocator::adopt(std::int64_t bytes) noexcept { impl_->count(bytes); }
void Allocator::forget(std::int64_t bytes) noexcept { impl_->in_use.fetch_sub(bytes, std::memory_order_relaxed); }

MemoryStats Allocator::stats() const noexcept { return {impl_->in_use.load(), impl_->peak.load(), impl_->blocks.load()}; }

std::int64_t Allocator::trim() noexcept {
  std::int64_t bytes = impl_->per_thread ? free_thread_cache() : 0;
  {
    const std::lock_guard lock(impl_->mutex);
    for (auto& [size, blocks] : impl_->free) {
      bytes += size * static_cast<std::int64_t>(blocks.size());
      for (void* block : blocks) impl_->free_block(block, size);
      blocks.clear();
    }
  }
  ::malloc_trim(0);
  return bytes;
}

std::int64_t Allocator::system_bytes() const noexcept { return impl_->system->now.load(); }
std::int64_t Allocator::peak_system_bytes() const noexcept { return impl_->system->peak.load(); }
std::int64_t Allocator::limit() const noexcept { return impl_->system->limit.load(); }

void Allocator::set_limit(std::int64_t bytes, MemoryReclaimer* reclaimer) noexcept {
  impl_->reclaimer.store(reclaimer);
  impl_->system->peak.store(impl_->system->now.load());
  impl_->system->limit.store(bytes);
}

void Allocator::raise_peak(std::int64_t bytes) noexcept { impl_->raise(bytes); }

void Allocator::reset_peak() noexcept { impl_->peak.store(impl_->in_use.load()); }

Allocator& Allocator::host() {
  static Allocator* host = [] {
    auto* a = new Allocator;  // never destroyed, because tensors may live until the end of the process
    a->impl_->per_thread = true;
    a->impl_->system = &host_bytes;
    return a;
  }();
  return *host;
}

}  // namespace tapedeck
