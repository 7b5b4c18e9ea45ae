// The replaced allocators. They call nothing but malloc, and they keep what they note in memory from malloc.
#include <tapedeck/tests/allocation/failures.h>

#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/ir/error.h>

#include <oneapi/tbb/task_group.h>

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tapedeck::test {
namespace {

std::atomic<std::int64_t> bytes_from_new{0};
std::atomic<bool> no_tasks{false};
std::atomic<long> tasks_refused{0};

// The stacks seen so far, by their hash, and the number of the first allocation of each. Open addressing in static memory, so
// that noting a stack allocates nothing.
struct StackTable {
  static constexpr std::size_t kSlots = 1 << 16;
  std::uint64_t hashes[kSlots];
  long first[kSlots];
  std::size_t used;
};
StackTable stacks;

struct ThreadPlan {
  bool counts_bytes = false, counts = false, notes_stacks = false, busy = false, failed = false;
  long counted = 0, fails_at = 0;
};
constinit thread_local ThreadPlan plan;

constexpr int kFrames = 40;  // so many frames tell stacks apart

std::uint64_t hash_of_stack() {
  void* frames[kFrames];
  const int n = backtrace(frames, kFrames);
  std::uint64_t hash = 14695981039346656037u;
  for (int i = 0; i < n; ++i) hash = (hash ^ reinterpret_cast<std::uintptr_t>(frames[i])) * 1099511628211u;
  return hash | 1;
}

void note_stack() {
  const std::uint64_t hash = hash_of_stack();
  for (std::size_t i = (hash >> 20) % StackTable::kSlots;; i = (i + 1) % StackTable::kSlots) {
    if (stacks.hashes[i] == hash) return;
    if (stacks.hashes[i] != 0) continue;
    if (++stacks.used == StackTable::kSlots) std::abort();
    stacks.hashes[i] = hash;
    stacks.first[i] = plan.counted;
    return;
  }
}

// Counts an allocation of this thread. Returns true if it must fail.
bool must_fail() {
  if (!plan.counts || plan.busy) return false;
  ++plan.counted;
  if (plan.notes_stacks) {
    plan.busy = true;
    note_stack();
    plan.busy = false;
  }
  if (plan.counted != plan.fails_at) return false;
  return plan.failed = true;
}

// Stands before each block, at the end of the bytes that keep the block aligned.
struct Header {
  std::uint32_t padding, counted;  // `counted`: whether the bytes are counted as live
  std::size_t bytes;
};

void* take(std::size_t bytes, std::size_t alignment = 16) {
  if (must_fail()) throw std::bad_alloc();
  const std::size_t padding = std::max(alignment, sizeof(Header));
  auto* whole = static_cast<char*>(std::aligned_alloc(padding, (bytes + padding + padding - 1) / padding * padding));
  if (!whole) throw std::bad_alloc();
  const Header header{static_cast<std::uint32_t>(padding), plan.counts_bytes, bytes};
  std::memcpy(whole + padding - sizeof header, &header, sizeof header);
  if (header.counted) bytes_from_new.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  return whole + padding;
}

void give(void* block) noexcept {
  if (!block) return;
  Header header;
  std::memcpy(&header, static_cast<char*>(block) - sizeof header, sizeof header);
  if (header.counted) bytes_from_new.fetch_sub(static_cast<std::int64_t>(header.bytes), std::memory_order_relaxed);
  std::free(static_cast<char*>(block) - header.padding);
}

}  // namespace

FailAllocation::FailAllocation(long k) {
  plan.counted = 0;
  plan.fails_at = k;
  plan.failed = false;
  plan.counts = true;
}

FailAllocation::~FailAllocation() { plan.counts = false; }
long FailAllocation::counted() const { return plan.counted; }
bool FailAllocation::failed() const { return plan.failed; }

DistinctStacks::DistinctStacks() {
  void* frame[1];
  backtrace(frame, 1);  // its first call loads a library
  std::memset(&stacks, 0, sizeof stacks);
  plan.notes_stacks = true;
}

DistinctStacks::~DistinctStacks() { plan.notes_stacks = false; }

std::vector<long> DistinctStacks::first() const {
  std::vector<long> first;
  for (std::size_t i = 0; i < StackTable::kSlots; ++i)
    if (stacks.hashes[i]) first.push_back(stacks.first[i]);
  return first;
}

NoTasks::NoTasks() {
  tasks_refused = 0;
  no_tasks = true;
}
NoTasks::~NoTasks() { no_tasks = false; }
long NoTasks::refused() const { return tasks_refused; }

CountBytes::CountBytes() { plan.counts_bytes = true; }
CountBytes::~CountBytes() { plan.counts_bytes = false; }

std::int64_t live_bytes() { return bytes_from_new + Allocator::host().stats().bytes_in_use; }

}  // namespace tapedeck::test

// ---- operator new ----

using tapedeck::test::give;
using tapedeck::test::take;

void* operator new(std::size_t bytes) { return take(bytes); }
void* operator new[](std::size_t bytes) { return take(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return take(bytes, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return take(bytes, static_cast<std::size_t>(a)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return take(bytes);
  } catch (...) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept { return operator new(bytes, tag); }
void operator delete(void* p) noexcept { give(p); }
void operator delete[](void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give(p); }

// ---- the allocator of tensors ----

// The linker gives calls of Allocator::allocate the name __wrap_..., and the function itself the name __real_...
extern "C" {
void* __real__ZN8tapedeck9Allocator8allocateEl(tapedeck::Allocator* allocator, long bytes);

void* __wrap__ZN8tapedeck9Allocator8allocateEl(tapedeck::Allocator* allocator, long bytes) {
  if (bytes > 0 && tapedeck::test::must_fail()) throw tapedeck::ExecutionError("out of memory: a test wants it");
  return __real__ZN8tapedeck9Allocator8allocateEl(allocator, bytes);
}
}

// ---- tasks of TBB ----

namespace tbb::detail::r1 {

// TBB's library exports this function, and the program's own definition comes first.
void* allocate(d1::small_object_pool*& pool, std::size_t bytes) {
  using Function = void* (*)(d1::small_object_pool*&, std::size_t);
  static const auto next =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "_ZN3tbb6detail2r18allocateERPNS0_2d117small_object_poolEm"));
  if (tapedeck::test::no_tasks) {
    tapedeck::test::tasks_refused.fetch_add(1);
    throw std::bad_alloc();
  }
  return next(pool, bytes);
}

}  // namespace tbb::detail::r1
